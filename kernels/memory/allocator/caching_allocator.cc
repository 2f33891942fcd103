#include "kernels/memory/allocator/caching_allocator.h"

#include <fmt/format.h>

#include <algorithm>
#include <new>

#include "kernels/memory/allocator/rounding.h"

namespace memfathom {

namespace {

constexpr std::int64_t kMaxRequestBytes = std::int64_t{1} << 55;

}  // namespace

CachingAllocator::CachingAllocator(SegmentSource& source, const AllocatorOptions& options)
    : source_(source), options_(options) {
  if (options_.expandable_segments && !source_.expandable()) {
    throw Error(ErrorKind::kEnvironment,
                "expandable_segments: this device cannot map memory into reserved addresses; leave "
                "the option out");
  }
  rounds_to_power2_ = std::any_of(options_.roundup_power2_divisions.begin(),
                                  options_.roundup_power2_divisions.end(),
                                  [](std::int64_t divisions) { return divisions > 1; });
  last_pools_ = add_pools(0, 0);
}

CachingAllocator::~CachingAllocator() {
  if (is_unusable_) return;  // its lists may be half changed; segments stay with their source
  try {
    release_all_segments();
  } catch (const std::bad_alloc&) {
    // Without memory to list them, segments stay with their source until it ends.
  }
}

Allocation CachingAllocator::allocate(Bytes size, int stream) {
  const std::int64_t requested = size.count();
  if (requested <= 0) {
    if (requested == 0) return {};
    throw Error(ErrorKind::kInput,
                fmt::format("a request for {} B of memory; it must not be negative", requested));
  }
  if (requested > kMaxRequestBytes) throw_out_of_memory(requested);
  const std::int64_t rounded =
      rounds_to_power2_ ? round_request(requested, options_)
                        : (requested + kMinBlockSize - 1) / kMinBlockSize * kMinBlockSize;
  if (is_unusable_) throw std::bad_alloc();
  try {
    const std::uint32_t pool_index = pool_of(rounded, stream);
    Pool& pool = *pools_[pool_index];
    BlockId id = take_free_block(pool, rounded);
    if (id == kNone) id = acquire(pool_index, rounded);
    id = alloc_found_block(id, pool, rounded, requested);
    return {blocks_[id].address, Bytes{blocks_[id].size}, id};
  } catch (const std::bad_alloc&) {
    is_unusable_ = true;
    throw;
  }
}

void CachingAllocator::free(const Allocation& allocation) {
  if (!allocation || is_unusable_) return;
  try {
    free_allocated(checked(allocation));
  } catch (const std::bad_alloc&) {
    is_unusable_ = true;
    throw;
  }
}

void CachingAllocator::free_allocated(BlockId id) {
  Block& block = blocks_[id];
  const bool small = pools_[block.pool]->small;
  statistics_.allocation.add(small, -1);
  statistics_.allocated_bytes.add(small, -block.size);
  if (block.on_other_streams) {
    block.state = State::kAwaitingEvents;
    awaiting_events_.push_back(id);
  } else {
    free_block(id);
  }
}

void CachingAllocator::record_stream(const Allocation& allocation, int stream) {
  if (!allocation) return;
  const BlockId id = checked(allocation);
  if (stream == pools_[blocks_[id].pool]->stream) return;
  blocks_[id].on_other_streams = true;
}

void CachingAllocator::process_events() {
  if (is_unusable_) return;
  const std::vector<BlockId> completed = std::exchange(awaiting_events_, {});
  for (const BlockId id : completed) {
    blocks_[id].on_other_streams = false;
    free_block(id);
  }
}

void CachingAllocator::use_private_pool(int pool) {
  private_pool_ = pool;
  for (const std::unique_ptr<Pool>& one : pools_) {
    if (pool != 0 && one->private_pool == pool) one->is_kept = true;
  }
}

void CachingAllocator::release_private_pool(int pool) {
  for (const std::unique_ptr<Pool>& one : pools_) {
    if (pool != 0 && one->private_pool == pool) one->is_kept = false;
  }
}

void CachingAllocator::empty_cache() {
  if (!is_unusable_) release_cached_blocks();
}

CachingAllocator::BlockId CachingAllocator::checked(const Allocation& allocation) const {
  if (allocation.block >= blocks_.size() || blocks_[allocation.block].state != State::kAllocated ||
      blocks_[allocation.block].address != allocation.address) {
    throw Error(ErrorKind::kInternal,
                fmt::format("block {} at {:#x} was freed or used but is not in use",
                            allocation.block, allocation.address));
  }
  return allocation.block;
}

std::uint32_t CachingAllocator::pool_of(std::int64_t size, int stream) {
  const std::pair<int, int> wanted{private_pool_, stream};
  if (wanted != last_stream_) {
    const auto found = pools_of_stream_.find(wanted);
    last_pools_ =
        found == pools_of_stream_.end() ? add_pools(private_pool_, stream) : found->second;
    last_stream_ = wanted;
  }
  return last_pools_ + (size <= kSmallSize ? 0 : 1);
}

std::uint32_t CachingAllocator::add_pools(int private_pool, int stream) {
  const auto index = static_cast<std::uint32_t>(pools_.size());
  for (const bool small : {true, false}) {
    auto pool = std::make_unique<Pool>();
    pool->stream = stream;
    pool->private_pool = private_pool;
    pool->is_kept = private_pool != 0;
    pool->small = small;
    pool->page = small ? kSmallBuffer : kLargeBuffer;
    pools_.push_back(std::move(pool));
  }
  pools_of_stream_.emplace(std::pair(private_pool, stream), index);
  return index;
}

CachingAllocator::BlockId CachingAllocator::new_block(std::uint64_t address, std::int64_t size,
                                                      std::uint32_t pool) {
  BlockId id = first_unused_;
  if (id == kNone) {
    if (blocks_.size() >= kNone)
      throw Error(ErrorKind::kInternal, "more than 2^32 blocks of memory are in use");
    id = static_cast<BlockId>(blocks_.size());
    blocks_.emplace_back();
  } else {
    first_unused_ = blocks_[id].next;
  }
  Block& block = blocks_[id];
  block = Block{};
  block.address = address;
  block.size = size;
  block.pool = pool;
  block.state = State::kFree;
  return id;
}

void CachingAllocator::discard(BlockId id) {
  blocks_[id].state = State::kUnused;
  blocks_[id].next = first_unused_;
  first_unused_ = id;
}

void CachingAllocator::link_between(BlockId id, BlockId previous, BlockId next) {
  blocks_[id].previous = previous;
  blocks_[id].next = next;
  if (previous != kNone) blocks_[previous].next = id;
  if (next != kNone) blocks_[next].previous = id;
}

CachingAllocator::BlockId CachingAllocator::take_free_block(Pool& pool, std::int64_t size) {
  FreeList::Position position =
      pool.free.lower_bound(FreeList::key(static_cast<std::uint64_t>(size), 0, 0));
  if (position == pool.free.end()) return kNone;
  if (options_.expandable_segments) position = best_expandable_fit(pool, position);
  const BlockId id = FreeList::block_of(pool.free.at(position));
  if (options_.max_split_size != AllocatorOptions::kUnlimited) {
    const std::int64_t limit = options_.max_split_size.count();
    const std::int64_t found = blocks_[id].size;
    if (size < limit && found >= limit) return kNone;
    if (size >= limit && found - size >= options_.max_non_split_rounding.count()) return kNone;
  }
  pool.free.erase_at(position);
  return id;
}

// Serves a request without a matching cached block: a new segment, after releasing the cache if
// needed.
CachingAllocator::BlockId CachingAllocator::acquire(std::uint32_t pool, std::int64_t size) {
  BlockId id = new_segment(pool, size);
  if (id == kNone && release_oversize_blocks(*pools_[pool], size)) id = new_segment(pool, size);
  if (id == kNone) {
    release_cached_blocks();
    ++statistics_.num_alloc_retries;
    id = new_segment(pool, size);
  }
  if (id == kNone) throw_out_of_memory(options_.expandable_segments ? size : segment_size(size));
  return id;
}

CachingAllocator::BlockId CachingAllocator::new_segment(std::uint32_t pool, std::int64_t size) {
  if (options_.expandable_segments) return grow_expandable(pool, size);
  const std::int64_t bytes = segment_size(size);
  const std::optional<std::uint64_t> address = source_.allocate(Bytes{bytes}, pools_[pool]->stream);
  if (!address) return kNone;
  if (*address % kMinBlockSize != 0 || *address >= FreeList::kLimit) {
    source_.release(*address, Bytes{bytes});
    throw Error(ErrorKind::kInternal,
                fmt::format("a segment at {:#x} is not aligned to 512 B", *address));
  }
  const bool small = pools_[pool]->small;
  statistics_.segment.add(small, 1);
  statistics_.reserved_bytes.add(small, bytes);
  return new_block(*address, bytes, pool);
}

void CachingAllocator::throw_out_of_memory(std::int64_t size) {
  ++statistics_.num_ooms;
  const Bytes allocated{statistics_.allocated_bytes.all.current};
  const Bytes reserved{statistics_.reserved_bytes.all.current};
  const std::optional<Bytes> capacity = source_.capacity();
  throw OutOfMemory(
      fmt::format("out of memory: {} more are needed, {} are allocated and {} reserved{}; use a "
                  "smaller batch or model",
                  to_string(Bytes{size}), to_string(allocated), to_string(reserved),
                  capacity ? fmt::format(" of {}", to_string(*capacity)) : std::string()),
      Bytes{size}, allocated, reserved);
}

bool CachingAllocator::should_split(const Block& block, const Pool& pool, std::int64_t size) const {
  const std::int64_t remaining = block.size - size;
  if (pool.small || options_.expandable_segments) return remaining >= kMinBlockSize;
  return size < options_.max_split_size.count() && remaining > kSmallSize;
}

// Marks a block that is in no free list as allocated, and returns the remainder to the pool.
CachingAllocator::BlockId CachingAllocator::alloc_found_block(BlockId id, Pool& pool,
                                                              std::int64_t size,
                                                              std::int64_t requested) {
  const bool already_split = blocks_[id].is_split();
  const bool counts_splits =
      !options_.expandable_segments;  // expandable segments can always release free pages
  if (should_split(blocks_[id], pool, size)) {
    const BlockId remaining = new_block(blocks_[id].address + static_cast<std::uint64_t>(size),
                                        blocks_[id].size - size, blocks_[id].pool);
    link_between(remaining, id, blocks_[id].next);
    blocks_[id].size = size;
    pool.free.insert(key_of(remaining));
    if (counts_splits && already_split) {
      statistics_.inactive_split_bytes.add(pool.small, -size);
    } else if (counts_splits) {
      statistics_.inactive_split.add(pool.small, 1);
      statistics_.inactive_split_bytes.add(pool.small, blocks_[remaining].size);
    }
  } else if (counts_splits && already_split) {
    statistics_.inactive_split.add(pool.small, -1);
    statistics_.inactive_split_bytes.add(pool.small, -blocks_[id].size);
  }
  Block& block = blocks_[id];
  block.state = State::kAllocated;
  block.requested = requested;
  statistics_.allocation.add(pool.small, 1);
  statistics_.allocated_bytes.add(pool.small, block.size);
  statistics_.active.add(pool.small, 1);
  statistics_.active_bytes.add(pool.small, block.size);
  statistics_.requested_bytes.add(pool.small, requested);
  return id;
}

void CachingAllocator::free_block(BlockId id) {
  Block& block = blocks_[id];
  Pool& pool = *pools_[block.pool];
  statistics_.active.add(pool.small, -1);
  statistics_.active_bytes.add(pool.small, -block.size);
  statistics_.requested_bytes.add(pool.small, -block.requested);
  block.requested = 0;
  block.state = State::kFree;

  std::int64_t split_blocks = 0;
  std::int64_t split_bytes = 0;
  for (const BlockId neighbour : {block.previous, block.next}) {
    if (const std::int64_t gained = try_merge(id, neighbour); gained > 0) {
      --split_blocks;
      split_bytes -= gained;
    }
  }
  pool.free.insert(key_of(id));
  if (options_.expandable_segments) return;
  if (block.is_split()) {
    ++split_blocks;
    split_bytes += block.size;
  }
  statistics_.inactive_split.add(pool.small, split_blocks);
  statistics_.inactive_split_bytes.add(pool.small, split_bytes);
}

std::int64_t CachingAllocator::try_merge(BlockId id, BlockId other) {
  if (other == kNone) return 0;
  Block& block = blocks_[id];
  const Block& absorbed = blocks_[other];
  if (absorbed.state != block.state) return 0;  // both kFree or both kUnmapped
  Pool& pool = *pools_[block.pool];
  if (absorbed.state == State::kFree) {
    pool.free.erase(key_of(other));
  } else {
    pool.unmapped.erase({absorbed.address, other});
  }
  const std::int64_t gained = absorbed.size;
  if (block.previous == other) {
    block.address = absorbed.address;
    link_between(id, absorbed.previous, block.next);
  } else {
    link_between(id, block.previous, absorbed.next);
  }
  block.size += gained;
  discard(other);
  return gained;
}

}  // namespace memfathom

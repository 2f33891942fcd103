// Expandable segments of CachingAllocator: one address range per stream and pool, mapped page by
// page.
#include <algorithm>
#include <iterator>

#include "kernels/memory/allocator/caching_allocator.h"

namespace memfathom {

namespace {

// The address space of a segment if the device's memory is unknown.
constexpr std::int64_t kUnknownCapacitySpan = std::int64_t{1} << 45;

constexpr std::int64_t round_up(std::int64_t value, std::int64_t step) {
  return (value + step - 1) / step * step;
}

}  // namespace

std::int64_t CachingAllocator::expandable_size(const Block& block) const {
  if (block.next == kNone || blocks_[block.next].state != State::kUnmapped) return block.size;
  return block.size + blocks_[block.next].size;
}

// A free block at the end of the mapped part counts with the size it could grow to: a slightly
// larger block between others is preferred, so that the growing end stays available.
FreeList::Position CachingAllocator::best_expandable_fit(const Pool& pool,
                                                         FreeList::Position position) const {
  const auto size_at = [&](FreeList::Position p) {
    return expandable_size(blocks_[FreeList::block_of(pool.free.at(p))]);
  };
  for (FreeList::Position next = pool.free.next(position);
       next != pool.free.end() && size_at(next) < size_at(position); next = pool.free.next(next)) {
    position = next;
  }
  return position;
}

CachingAllocator::BlockId CachingAllocator::grow_expandable(std::uint32_t pool, std::int64_t size) {
  BlockId candidate = find_expandable_room(pool, size);
  if (candidate == kNone) return kNone;
  if (blocks_[candidate].state == State::kUnmapped &&
      !map_block(candidate, std::min(blocks_[candidate].size, size))) {
    return kNone;
  }
  while (blocks_[candidate].size < size) {
    const BlockId next = blocks_[candidate].next;
    const std::int64_t missing = size - blocks_[candidate].size;
    if (!map_block(next, std::min(missing, blocks_[next].size))) return kNone;
    candidate = next;  // it has absorbed the free block before it
  }
  pools_[pool]->free.erase(key_of(candidate));
  return candidate;
}

// The lowest address at which adjacent free and unmapped blocks have room for `size`; a new range
// if there is none.
CachingAllocator::BlockId CachingAllocator::find_expandable_room(std::uint32_t pool_index,
                                                                 std::int64_t size) {
  Pool& pool = *pools_[pool_index];
  const auto usable = [&](BlockId id) {
    return id != kNone &&
           (blocks_[id].state == State::kFree || blocks_[id].state == State::kUnmapped);
  };
  for (const auto& [address, unmapped] : pool.unmapped) {
    const BlockId before = blocks_[unmapped].previous;
    const BlockId start = usable(before) ? before : unmapped;
    std::int64_t room = 0;
    for (BlockId id = start; room < size && usable(id); id = blocks_[id].next)
      room += blocks_[id].size;
    if (room >= size) return start;
  }
  // PyTorch reserves an eighth more than the device has, so that gaps need not be compacted.
  const std::optional<Bytes> capacity = source_.capacity();
  const std::int64_t span = capacity
                                ? round_up(capacity->count() + capacity->count() / 8, pool.page)
                                : round_up(kUnknownCapacitySpan, pool.page);
  if (size > span) return kNone;
  const std::uint64_t address = source_.reserve(Bytes{span});
  const BlockId id = new_block(address, span, pool_index);
  blocks_[id].state = State::kUnmapped;
  pool.expandable_segments.emplace(address, span);
  pool.unmapped.emplace(address, id);
  return id;
}

// Maps the pages that hold the first `size` bytes of an unmapped block and merges them with free
// neighbours.
bool CachingAllocator::map_block(BlockId id, std::int64_t size) {
  const std::uint32_t pool_index = blocks_[id].pool;
  Pool& pool = *pools_[pool_index];
  const std::int64_t mapped = round_up(size, pool.page);
  const std::uint64_t address = blocks_[id].address;
  if (!source_.map(address, Bytes{mapped}, Bytes{pool.page})) return false;
  pool.unmapped.erase({address, id});
  if (mapped < blocks_[id].size) {
    const BlockId rest = new_block(address + static_cast<std::uint64_t>(mapped),
                                   blocks_[id].size - mapped, pool_index);
    blocks_[rest].state = State::kUnmapped;
    link_between(rest, id, blocks_[id].next);
    pool.unmapped.emplace(blocks_[rest].address, rest);
    blocks_[id].size = mapped;
  }
  blocks_[id].state = State::kFree;
  try_merge(id, blocks_[id].previous);
  try_merge(id, blocks_[id].next);
  pool.free.insert(key_of(id));
  statistics_.reserved_bytes.add(pool.small, mapped);
  return true;
}

// Unmaps the whole pages inside a free block; the remainders before and after them stay free.
void CachingAllocator::unmap_block(BlockId id) {
  const std::uint32_t pool_index = blocks_[id].pool;
  Pool& pool = *pools_[pool_index];
  const auto segment = std::prev(pool.expandable_segments.upper_bound(blocks_[id].address));
  const auto offset = static_cast<std::int64_t>(blocks_[id].address - segment->first);
  const std::int64_t begin = round_up(offset, pool.page);
  const std::int64_t end = (offset + blocks_[id].size) / pool.page * pool.page;
  if (begin >= end) return;
  const std::uint64_t address = segment->first + static_cast<std::uint64_t>(begin);
  source_.unmap(address, Bytes{end - begin}, Bytes{pool.page});
  pool.free.erase(key_of(id));
  if (begin > offset) {
    const BlockId before = new_block(blocks_[id].address, begin - offset, pool_index);
    link_between(before, blocks_[id].previous, id);
    pool.free.insert(key_of(before));
  }
  if (offset + blocks_[id].size > end) {
    const BlockId after = new_block(segment->first + static_cast<std::uint64_t>(end),
                                    offset + blocks_[id].size - end, pool_index);
    link_between(after, id, blocks_[id].next);
    pool.free.insert(key_of(after));
  }
  blocks_[id].address = address;
  blocks_[id].size = end - begin;
  blocks_[id].state = State::kUnmapped;
  try_merge(id, blocks_[id].previous);
  try_merge(id, blocks_[id].next);
  pool.unmapped.emplace(blocks_[id].address, id);
  statistics_.reserved_bytes.add(pool.small, begin - end);
}

void CachingAllocator::unreserve_if_unmapped(BlockId id) {
  if (blocks_[id].state != State::kUnmapped || blocks_[id].is_split()) return;
  Pool& pool = *pools_[blocks_[id].pool];
  source_.unreserve(blocks_[id].address, Bytes{blocks_[id].size});
  pool.expandable_segments.erase(blocks_[id].address);
  pool.unmapped.erase({blocks_[id].address, id});
  discard(id);
}

}  // namespace memfathom

// The functions of CachingAllocator that release memory, and its snapshot.
#include <algorithm>
#include <utility>

#include "kernels/memory/allocator/caching_allocator.h"
#include "kernels/memory/allocator/rounding.h"

namespace memfathom {

// With max_split_size: releases just enough unsplittable blocks for a request of `size`: the
// smallest that is large enough, else from the largest downwards. Returns whether that was enough.
// Expandable segments have no such blocks.
bool CachingAllocator::release_oversize_blocks(Pool& pool, std::int64_t size) {
  if (options_.max_split_size == AllocatorOptions::kUnlimited || options_.expandable_segments)
    return false;
  const std::int64_t wanted = std::max(size, options_.max_split_size.count());
  FreeList::Position position =
      pool.free.lower_bound(FreeList::key(static_cast<std::uint64_t>(wanted), 0, 0));
  if (position != pool.free.end()) {
    const BlockId id = FreeList::block_of(pool.free.at(position));
    pool.free.erase_at(position);
    release_block(id);
    return true;
  }
  std::int64_t released = 0;
  while (released < wanted && !pool.free.empty()) {
    position = pool.free.previous(pool.free.end());
    const BlockId id = FreeList::block_of(pool.free.at(position));
    if (blocks_[id].size < options_.max_split_size.count()) break;
    released += blocks_[id].size;
    pool.free.erase_at(position);
    release_block(id);
  }
  return released >= wanted;
}

void CachingAllocator::release_cached_blocks() {
  process_events();
  // PyTorch visits the large pools of all streams first.
  for (const std::size_t first : {std::size_t{1}, std::size_t{0}}) {
    for (std::size_t i = first; i < pools_.size(); i += 2) {
      if (!pools_[i]->is_kept) release_blocks(*pools_[i]);
    }
  }
}

void CachingAllocator::release_blocks(Pool& pool) {
  std::vector<BlockId> candidates;
  for (FreeList::Position p = pool.free.begin(); p != pool.free.end(); p = pool.free.next(p)) {
    const BlockId id = FreeList::block_of(pool.free.at(p));
    if (options_.expandable_segments || !blocks_[id].is_split()) candidates.push_back(id);
  }
  for (const BlockId id : candidates) {
    if (options_.expandable_segments) {
      unmap_block(id);
      unreserve_if_unmapped(id);
    } else {
      pool.free.erase(key_of(id));
      release_block(id);
    }
  }
}

// Releases a whole segment; its only block is in no list.
void CachingAllocator::release_block(BlockId id) {
  const Block& block = blocks_[id];
  const bool small = pools_[block.pool]->small;
  source_.release(block.address, Bytes{block.size});
  statistics_.segment.add(small, -1);
  statistics_.reserved_bytes.add(small, -block.size);
  discard(id);
}

void CachingAllocator::release_all_segments() {
  for (const SegmentSnapshot& segment : snapshot().segments) {
    if (!segment.expandable) {
      source_.release(segment.address, segment.size);
      continue;
    }
    const Bytes page{segment.small_pool ? kSmallBuffer : kLargeBuffer};
    Bytes span;
    Bytes mapped;  // a run of mapped blocks, which ends at the next unmapped one
    std::uint64_t start = 0;
    for (const BlockSnapshot& block : segment.blocks) {
      span += block.size;
      if (block.state != BlockState::kUnmapped) {
        if (mapped == Bytes{}) start = block.address;
        mapped += block.size;
      } else if (mapped != Bytes{}) {
        source_.unmap(start, std::exchange(mapped, Bytes{}), page);
      }
    }
    if (mapped != Bytes{}) source_.unmap(start, mapped, page);
    source_.unreserve(segment.address, span);
  }
}

AllocatorSnapshot CachingAllocator::snapshot() const {
  AllocatorSnapshot snapshot;
  snapshot.statistics = statistics_;
  for (const Block& head : blocks_) {
    if (head.state == State::kUnused || head.previous != kNone) continue;
    const Pool& pool = *pools_[head.pool];
    SegmentSnapshot segment;
    segment.address = head.address;
    segment.stream = pool.stream;
    segment.private_pool = pool.private_pool;
    segment.small_pool = pool.small;
    segment.expandable = options_.expandable_segments;
    for (const Block* block = &head;; block = &blocks_[block->next]) {
      const BlockState state = block->state == State::kAllocated ? BlockState::kAllocated
                               : block->state == State::kAwaitingEvents
                                   ? BlockState::kAwaitingEvents
                               : block->state == State::kUnmapped ? BlockState::kUnmapped
                                                                  : BlockState::kFree;
      segment.blocks.push_back(
          {block->address, Bytes{block->size}, Bytes{block->requested}, state});
      if (state != BlockState::kUnmapped) segment.size += Bytes{block->size};
      if (block->next == kNone) break;
    }
    snapshot.segments.push_back(std::move(segment));
  }
  std::sort(
      snapshot.segments.begin(), snapshot.segments.end(),
      [](const SegmentSnapshot& a, const SegmentSnapshot& b) { return a.address < b.address; });
  return snapshot;
}

}  // namespace memfathom

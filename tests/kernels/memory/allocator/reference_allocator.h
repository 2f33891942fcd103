// ReferenceAllocator: the caching allocator's rules written a second time, with std::set and
// pointers and no regard for speed.
//
// The property tests compare every step with it and the benchmark names it as the plain version. It
// shares no code with kernels/allocator but the source of segments.
#pragma once

#include <algorithm>
#include <cstdint>
#include <list>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <vector>

#include "kernels/memory/allocator/segment_source.h"

namespace memfathom::testing {

struct ReferenceOptions {
  std::int64_t max_split = INT64_MAX;
  std::int64_t max_non_split_rounding = 20 << 20;
  bool expandable = false;
};

class ReferenceAllocator {
 public:
  struct Block {
    std::int64_t address;
    std::int64_t size;
    int stream;
    bool small;
    bool mapped = true;
    bool allocated = false;
    bool waiting = false;  // freed, but used on another stream
    bool shared = false;
    std::int64_t requested = 0;
    Block* before = nullptr;
    Block* behind = nullptr;
  };

  struct Totals {
    std::int64_t allocated = 0;
    std::int64_t active = 0;
    std::int64_t reserved = 0;
    std::int64_t inactive_split = 0;
    std::int64_t requested = 0;
    bool operator==(const Totals&) const = default;
  };

  explicit ReferenceAllocator(SegmentSource& source, ReferenceOptions options = {})
      : source_(source), options_(options) {}

  ~ReferenceAllocator() {
    for (Block* block : all_) delete block;
  }
  ReferenceAllocator(const ReferenceAllocator&) = delete;
  ReferenceAllocator& operator=(const ReferenceAllocator&) = delete;

  // nullptr: out of memory.
  Block* allocate(std::int64_t bytes, int stream) {
    const std::int64_t size = std::max<std::int64_t>(512, (bytes + 511) / 512 * 512);
    const bool small = size <= kMiB;
    Block* block = search(size, stream, small);
    if (block == nullptr) block = grow(size, stream, small);
    if (block == nullptr && release_oversize(size, stream, small))
      block = grow(size, stream, small);
    if (block == nullptr) {
      ++retries;
      empty_cache();
      block = grow(size, stream, small);
    }
    if (block == nullptr) return nullptr;
    const std::int64_t rest = block->size - size;
    const bool split =
        small || options_.expandable ? rest >= 512 : size < options_.max_split && rest > kMiB;
    if (split) {
      Block* tail = add({block->address + size, rest, stream, small});
      place_behind(block, tail);
      block->size = size;
      free_.insert(tail);
    }
    block->allocated = true;
    block->requested = bytes;
    allocated += block->size;
    peak = std::max(peak, allocated);
    return block;
  }

  void free(Block* block) {
    block->allocated = false;
    allocated -= block->size;
    if (block->shared) {
      block->waiting = true;
    } else {
      give_back(block);
    }
  }

  void record_stream(Block* block, int stream) { block->shared |= stream != block->stream; }

  void process_events() {
    const std::set<Block*> blocks = all_;
    std::vector<Block*> done;
    for (Block* block : blocks) {
      if (block->waiting) done.push_back(block);
    }
    for (Block* block : done) {
      block->waiting = false;
      block->shared = false;
      give_back(block);
    }
  }

  void empty_cache() {
    process_events();
    for (const bool small : {false, true}) {
      std::vector<Block*> candidates;
      for (Block* block : free_) {
        if (block->small == small) candidates.push_back(block);
      }
      for (Block* block : candidates) {
        if (options_.expandable) {
          unmap(block);
        } else if (block->before == nullptr && block->behind == nullptr) {
          free_.erase(block);
          release(block);
        }
      }
    }
  }

  Totals totals() const {
    Totals totals;
    for (const Block* block : all_) {
      if (block->allocated) totals.allocated += block->size;
      if (block->allocated || block->waiting) totals.active += block->size;
      if (block->allocated || block->waiting) totals.requested += block->requested;
      if (block->mapped) totals.reserved += block->size;
      const bool is_free = !block->allocated && !block->waiting && block->mapped;
      const bool is_part = block->before != nullptr || block->behind != nullptr;
      if (is_free && is_part && !options_.expandable) totals.inactive_split += block->size;
    }
    return totals;
  }

  const std::set<Block*>& blocks() const { return all_; }

  std::int64_t retries = 0;
  std::int64_t allocated = 0;
  std::int64_t peak = 0;

 private:
  static constexpr std::int64_t kMiB = 1 << 20;

  struct BySize {
    bool operator()(const Block* a, const Block* b) const {
      return std::tuple(a->small, a->stream, a->size, a->address) <
             std::tuple(b->small, b->stream, b->size, b->address);
    }
  };
  struct ByAddress {
    bool operator()(const Block* a, const Block* b) const { return a->address < b->address; }
  };

  Block* add(Block block) {
    auto* made = new Block(block);
    all_.insert(made);
    return made;
  }
  void remove(Block* block) {
    all_.erase(block);
    delete block;
  }
  static void place_behind(Block* block, Block* tail) {
    tail->before = block;
    tail->behind = block->behind;
    if (tail->behind != nullptr) tail->behind->before = tail;
    block->behind = tail;
  }

  static std::int64_t could_be(const Block* block) {
    const Block* next = block->behind;
    return block->size + (next != nullptr && !next->mapped ? next->size : 0);
  }

  Block* search(std::int64_t size, int stream, bool small) {
    Block key{0, size, stream, small};
    auto it = free_.lower_bound(&key);
    const auto fits = [&](auto i) {
      return i != free_.end() && (*i)->stream == stream && (*i)->small == small;
    };
    if (!fits(it)) return nullptr;
    if (options_.expandable) {
      for (auto next = std::next(it); fits(next) && could_be(*next) < could_be(*it); ++next)
        it = next;
    }
    Block* block = *it;
    if (size < options_.max_split && block->size >= options_.max_split) return nullptr;
    if (size >= options_.max_split && block->size >= size + options_.max_non_split_rounding)
      return nullptr;
    free_.erase(it);
    return block;
  }

  Block* grow(std::int64_t size, int stream, bool small) {
    if (options_.expandable) return grow_pages(size, stream, small);
    const std::int64_t segment = small              ? 2 * kMiB
                                 : size < 10 * kMiB ? 20 * kMiB
                                                    : (size + 2 * kMiB - 1) / (2 * kMiB) * 2 * kMiB;
    const std::optional<std::uint64_t> address = source_.allocate(Bytes{segment}, stream);
    if (!address) return nullptr;
    return add({static_cast<std::int64_t>(*address), segment, stream, small});
  }

  void release(Block* block) {
    source_.release(static_cast<std::uint64_t>(block->address), Bytes{block->size});
    remove(block);
  }

  bool release_oversize(std::int64_t size, int stream, bool small) {
    if (options_.max_split == INT64_MAX || options_.expandable) return false;
    const std::int64_t wanted = std::max(size, options_.max_split);
    std::vector<Block*> mine;  // ascending
    for (Block* block : free_) {
      if (block->stream == stream && block->small == small && block->size >= options_.max_split)
        mine.push_back(block);
    }
    std::int64_t released = 0;
    for (Block* block : mine) {
      if (block->size < wanted) continue;
      free_.erase(block);
      release(block);
      return true;
    }
    while (!mine.empty() && released < wanted) {
      released += mine.back()->size;
      free_.erase(mine.back());
      release(mine.back());
      mine.pop_back();
    }
    return released >= wanted;
  }

  void give_back(Block* block) {
    block->requested = 0;
    join(block);
    free_.insert(block);
  }

  static bool idle(const Block* block) {
    return block != nullptr && !block->allocated && !block->waiting;
  }

  void join(Block* block) {
    for (Block* other : {block->before, block->behind}) {
      if (!idle(other) || other->mapped != block->mapped) continue;
      if (other->mapped) {
        free_.erase(other);
      } else {
        unmapped_.erase(other);
      }
      if (other == block->before) {
        block->address = other->address;
        block->before = other->before;
        if (block->before != nullptr) block->before->behind = block;
      } else {
        block->behind = other->behind;
        if (block->behind != nullptr) block->behind->before = block;
      }
      block->size += other->size;
      remove(other);
    }
  }

  Block* grow_pages(std::int64_t size, int stream, bool small) {
    Block* start = room(size, stream, small);
    if (start == nullptr) return nullptr;
    if (!start->mapped && !map(start, std::min(start->size, size))) return nullptr;
    while (start->size < size) {
      Block* next = start->behind;
      if (!map(next, std::min(size - start->size, next->size))) return nullptr;
      start = next;
    }
    free_.erase(start);
    return start;
  }

  Block* room(std::int64_t size, int stream, bool small) {
    for (Block* gap : unmapped_) {
      if (gap->stream != stream || gap->small != small) continue;
      Block* start = idle(gap->before) ? gap->before : gap;
      std::int64_t found = 0;
      for (Block* b = start; idle(b) && found < size; b = b->behind) found += b->size;
      if (found >= size) return start;
    }
    const std::int64_t page = small ? 2 * kMiB : 20 * kMiB;
    const std::int64_t memory = source_.capacity() ? source_.capacity()->count() : 0;
    const std::int64_t addresses = memory > 0 ? memory + memory / 8 : std::int64_t{1} << 45;
    const std::int64_t span = (addresses + page - 1) / page * page;
    if (size > span) return nullptr;
    const auto address = static_cast<std::int64_t>(source_.reserve(Bytes{span}));
    Block* block = add({address, span, stream, small, false});
    starts_[address] = span;
    unmapped_.insert(block);
    return block;
  }

  bool map(Block* block, std::int64_t size) {
    const std::int64_t page = block->small ? 2 * kMiB : 20 * kMiB;
    const std::int64_t bytes = (size + page - 1) / page * page;
    if (!source_.map(static_cast<std::uint64_t>(block->address), Bytes{bytes}, Bytes{page}))
      return false;
    unmapped_.erase(block);
    if (bytes < block->size) {
      Block* tail =
          add({block->address + bytes, block->size - bytes, block->stream, block->small, false});
      place_behind(block, tail);
      block->size = bytes;
      unmapped_.insert(tail);
    }
    block->mapped = true;
    join(block);
    free_.insert(block);
    return true;
  }

  void unmap(Block* block) {
    const std::int64_t page = block->small ? 2 * kMiB : 20 * kMiB;
    const std::int64_t start = std::prev(starts_.upper_bound(block->address))->first;
    const std::int64_t offset = block->address - start;
    const std::int64_t begin = (offset + page - 1) / page * page;
    const std::int64_t end = (offset + block->size) / page * page;
    if (begin >= end) return;
    source_.unmap(static_cast<std::uint64_t>(start + begin), Bytes{end - begin}, Bytes{page});
    free_.erase(block);
    if (const std::int64_t rest = offset + block->size - end; rest > 0) {
      Block* tail = add({start + end, rest, block->stream, block->small});
      place_behind(block, tail);
      block->size -= rest;
      free_.insert(tail);
    }
    if (begin > offset) {
      Block* middle = add({start + begin, end - begin, block->stream, block->small});
      place_behind(block, middle);
      block->size = begin - offset;
      free_.insert(block);
      block = middle;
    }
    block->mapped = false;
    join(block);
    if (block->before == nullptr && block->behind == nullptr) {
      source_.unreserve(static_cast<std::uint64_t>(block->address), Bytes{block->size});
      starts_.erase(block->address);
      remove(block);
    } else {
      unmapped_.insert(block);
    }
  }

  SegmentSource& source_;
  ReferenceOptions options_;
  std::set<Block*, BySize> free_;
  std::set<Block*, ByAddress> unmapped_;
  std::set<Block*> all_;
  std::map<std::int64_t, std::int64_t> starts_;  // of expandable segments
};

}  // namespace memfathom::testing

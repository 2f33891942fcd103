// CachingAllocator: PyTorch's CUDA caching allocator over any SegmentSource.
//
// Requests are rounded to 512 bytes and served best fit from free blocks of the same stream and
// pool (small: up to 1 MiB); a miss allocates a segment of 2 MiB, 20 MiB or a multiple of 2 MiB,
// which is split if the rules allow it. Freed blocks merge with free neighbours and stay cached
// until the device is full or empty_cache() is called. With expandable segments, one address range
// per stream and pool grows page by page instead.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "core/bytes.h"
#include "kernels/memory/allocator/allocator.h"
#include "kernels/memory/allocator/free_list.h"
#include "kernels/memory/allocator/huge_pages.h"
#include "kernels/memory/allocator/options.h"
#include "kernels/memory/allocator/segment_source.h"
#include "kernels/memory/allocator/snapshot.h"

namespace memfathom {

class CachingAllocator final : public Allocator {
 public:
  // The source must outlive the allocator. Throws Error(kEnvironment) if the options request
  // expandable segments and the source does not support them.
  explicit CachingAllocator(SegmentSource& source, const AllocatorOptions& options = {});
  ~CachingAllocator() override;  // releases every segment, even those in use
  CachingAllocator(const CachingAllocator&) = delete;
  CachingAllocator& operator=(const CachingAllocator&) = delete;

  Allocation allocate(Bytes size, int stream = 0) override;
  void free(const Allocation& allocation) override;
  void record_stream(const Allocation& allocation, int stream) override;
  void process_events() override;
  void use_private_pool(int pool) override;
  void release_private_pool(int pool) override;
  void empty_cache() override;
  const AllocatorStatistics& statistics() const override { return statistics_; }
  void reset_peaks() override { statistics_.reset_peaks(); }

  AllocatorSnapshot snapshot() const;

 private:
  using BlockId = std::uint32_t;
  static constexpr BlockId kNone = Allocation::kNoBlock;

  enum class State : std::uint8_t { kUnused, kFree, kAllocated, kAwaitingEvents, kUnmapped };

  struct Block {
    std::uint64_t address = 0;
    std::int64_t size = 0;
    std::int64_t requested = 0;
    BlockId previous = kNone;  // neighbours within the segment, by address
    BlockId next = kNone;      // for an unused block: the next unused one
    std::uint32_t pool = 0;
    State state = State::kUnused;
    bool on_other_streams = false;

    bool is_split() const { return previous != kNone || next != kNone; }
  };

  struct Pool {
    FreeList free;
    std::set<std::pair<std::uint64_t, BlockId>> unmapped;  // of expandable segments, by address
    std::map<std::uint64_t, std::int64_t> expandable_segments;  // address, size
    int stream = 0;
    int private_pool = 0;  // 0: a common pool
    bool small = false;
    bool is_kept = false;   // its cache is not released: a CUDA graph may use it
    std::int64_t page = 0;  // the growth step of an expandable segment
  };

  FreeList::Key key_of(BlockId id) const {
    const Block& block = blocks_[id];
    return FreeList::key(static_cast<std::uint64_t>(block.size), block.address, id);
  }

  std::uint32_t pool_of(std::int64_t size, int stream);
  std::uint32_t add_pools(int private_pool, int stream);
  BlockId new_block(std::uint64_t address, std::int64_t size, std::uint32_t pool);
  void discard(BlockId id);
  void link_between(BlockId id, BlockId previous, BlockId next);

  BlockId take_free_block(Pool& pool, std::int64_t size);
  FreeList::Position best_expandable_fit(const Pool& pool, FreeList::Position position) const;
  BlockId acquire(std::uint32_t pool, std::int64_t size);
  BlockId new_segment(std::uint32_t pool, std::int64_t size);
  bool should_split(const Block& block, const Pool& pool, std::int64_t size) const;
  BlockId alloc_found_block(BlockId id, Pool& pool, std::int64_t size, std::int64_t requested);
  [[noreturn]] void throw_out_of_memory(std::int64_t size);

  void free_allocated(BlockId id);
  void free_block(BlockId id);
  // Merges the neighbour `other` into `id` if both are free (or both unmapped); returns the bytes
  // gained.
  std::int64_t try_merge(BlockId id, BlockId other);

  bool release_oversize_blocks(Pool& pool, std::int64_t size);
  void release_cached_blocks();
  void release_blocks(Pool& pool);
  void release_block(BlockId id);

  BlockId grow_expandable(std::uint32_t pool, std::int64_t size);
  BlockId find_expandable_room(std::uint32_t pool, std::int64_t size);
  bool map_block(BlockId id, std::int64_t size);
  void unmap_block(BlockId id);
  void unreserve_if_unmapped(BlockId id);
  std::int64_t expandable_size(const Block& block) const;
  void release_all_segments();

  BlockId checked(const Allocation& allocation) const;

  SegmentSource& source_;
  AllocatorOptions options_;
  bool rounds_to_power2_ = false;
  std::vector<Block, HugePages<Block>> blocks_;
  BlockId first_unused_ = kNone;
  // The host's memory ended in the middle of a change: nothing is allocated or freed any more.
  bool is_unusable_ = false;
  std::vector<std::unique_ptr<Pool>> pools_;
  // Private pool and stream -> the small pool; the large pool is next.
  std::map<std::pair<int, int>, std::uint32_t> pools_of_stream_;
  int private_pool_ = 0;
  std::pair<int, int> last_stream_{0, 0};  // with its private pool
  std::uint32_t last_pools_ = 0;
  std::vector<BlockId> awaiting_events_;
  AllocatorStatistics statistics_;
};

}  // namespace memfathom

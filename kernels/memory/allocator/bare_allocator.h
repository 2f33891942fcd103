// BareAllocator: counts tensors only, each rounded up to 512 bytes; no segments, cache or
// workspaces.
#pragma once

#include <vector>

#include "kernels/memory/allocator/allocator.h"

namespace memfathom {

// The contract's `backend: none`. Addresses are handles: nothing is placed in memory.
class BareAllocator final : public Allocator {
 public:
  static constexpr Bytes kGranularity{512};

  Allocation allocate(Bytes size, int stream = 0) override;
  void free(const Allocation& allocation) override;
  void record_stream(const Allocation&, int) override {}
  void process_events() override {}
  void empty_cache() override {}
  const AllocatorStatistics& statistics() const override { return statistics_; }
  void reset_peaks() override { statistics_.reset_peaks(); }

 private:
  struct Slot {
    std::int64_t bytes = 0;  // 0: not in use
    std::int64_t requested = 0;
  };

  void count(const Slot& slot, std::int64_t sign);

  std::vector<Slot> slots_;
  std::vector<std::uint32_t> unused_;
  AllocatorStatistics statistics_;
};

}  // namespace memfathom

// Timeline: what was alive and what was reserved from one allocation to the next, thinned to so
// many points that an image can be drawn of it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/component.h"
#include "kernels/framework/tensor/ledger.h"
#include "kernels/memory/allocator/forwarding_allocator.h"

namespace memfathom {

struct TimelinePoint {
  std::size_t phase = 0;       // of Timeline::phases
  ComponentBytes live{};       // over all modules
  std::int64_t allocated = 0;  // their sum
  std::int64_t reserved = 0;
};

struct TimelinePhase {
  std::string name;
  int iteration = 0;
};

struct Timeline {
  std::vector<TimelinePhase> phases;
  std::vector<TimelinePoint> points;  // of neighbours that were joined, the highest
};

// Passes everything on to another allocator and looks at the ledger at each event, of the load and
// the first two iterations; those after them are like the second. Every peak that the ledger noted
// since the last event is a point.
class WatchedAllocator final : public ForwardingAllocator {
 public:
  // Both must outlive it.
  WatchedAllocator(Allocator& inner, Timeline& timeline)
      : ForwardingAllocator(inner), timeline_(timeline) {}
  // Before it nothing is noted; the ledger must live until the last event.
  void watch(Ledger& ledger) { ledger_ = &ledger; }

  Allocation allocate(Bytes size, int stream = 0) override {
    note();
    return ForwardingAllocator::allocate(size, stream);
  }
  void free(const Allocation& allocation) override {
    note();
    ForwardingAllocator::free(allocation);
  }

 private:
  void note();
  void add(TimelinePoint point);
  void join_neighbours();

  Timeline& timeline_;
  Ledger* ledger_ = nullptr;
  std::int64_t peak_ = 0;       // of the last phase that was seen, as it was then
  std::int64_t events_ = 0;     // since the last point was begun
  std::int64_t per_point_ = 1;  // doubled whenever there are too many
};

}  // namespace memfathom

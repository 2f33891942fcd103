#include "kernels/memory/trace/replay.h"

#include <algorithm>

namespace memfathom {

namespace {

void keep_highest(PoolStatistic& kept, const PoolStatistic& seen) {
  const auto keep = [](Statistic& a, const Statistic& b) {
    a.current = b.current;
    a.peak = std::max(a.peak, b.peak);
  };
  keep(kept.all, seen.all);
  keep(kept.small_pool, seen.small_pool);
  keep(kept.large_pool, seen.large_pool);
}

void keep_highest(AllocatorStatistics& kept, const AllocatorStatistics& seen) {
  keep_highest(kept.allocated_bytes, seen.allocated_bytes);
  keep_highest(kept.reserved_bytes, seen.reserved_bytes);
  keep_highest(kept.active_bytes, seen.active_bytes);
  keep_highest(kept.inactive_split_bytes, seen.inactive_split_bytes);
  keep_highest(kept.requested_bytes, seen.requested_bytes);
  keep_highest(kept.allocation, seen.allocation);
  keep_highest(kept.segment, seen.segment);
  keep_highest(kept.active, seen.active);
  keep_highest(kept.inactive_split, seen.inactive_split);
  kept.num_alloc_retries = seen.num_alloc_retries;
  kept.num_ooms = seen.num_ooms;
}

class Replayer {
 public:
  Replayer(const Trace& trace, Allocator& allocator, const WorkspaceModel* workspaces)
      : trace_(trace), allocator_(allocator), workspaces_(workspaces), live_(trace.slots) {}

  ReplayResult run() {
    ReplayResult result;
    for (std::size_t i = 0; i < trace_.spans.size(); ++i) {
      const Trace::Span& span = trace_.spans[i];
      const std::size_t end =
          i + 1 < trace_.spans.size() ? trace_.spans[i + 1].first_event : trace_.events.size();
      allocator_.reset_peaks();
      const std::size_t peak_event = run_events(span.first_event, end);
      const AllocatorStatistics& seen = allocator_.statistics();
      result.spans.push_back({span.phase, span.iteration, Bytes{seen.allocated_bytes.all.peak},
                              Bytes{seen.reserved_bytes.all.peak},
                              Bytes{seen.active_bytes.all.peak},
                              Bytes{seen.requested_bytes.all.peak}, peak_event});
      keep_highest(result.statistics, seen);
    }
    return result;
  }

 private:
  // Returns the event after which allocated bytes were highest.
  std::size_t run_events(std::size_t first, std::size_t end) {
    std::size_t peak_event = first;
    const Statistic& allocated = allocator_.statistics().allocated_bytes.all;
    std::int64_t peak = allocated.peak;
    for (std::size_t i = first; i < end; ++i) {
      const Trace::Event& event = trace_.events[i];
      if (event.is_free()) {
        allocator_.free(live_[event.slot]);
      } else {
        if (next_pool_ < trace_.pools.size() && trace_.pools[next_pool_].first_event <= i)
          allocator_.use_private_pool(trace_.pools[next_pool_++].pool);
        live_[event.slot] = allocator_.allocate(Bytes{event.bytes}, event.stream);
      }
      while (workspaces_ != nullptr && next_call_ < trace_.convolutions.size() &&
             trace_.convolutions[next_call_].event == i) {
        take_workspace(trace_.convolutions[next_call_++].query, event.stream);
      }
      if (allocated.peak != peak) {
        peak = allocated.peak;
        peak_event = i;
      }
    }
    return peak_event;
  }

  void take_workspace(const ConvolutionQuery& query, int stream) {
    allocator_.free(allocator_.allocate(workspaces_->convolution(query).bytes, stream));
  }

  const Trace& trace_;
  Allocator& allocator_;
  const WorkspaceModel* workspaces_;
  std::vector<Allocation> live_;
  std::size_t next_call_ = 0;
  std::size_t next_pool_ = 0;
};

}  // namespace

Bytes ReplayResult::peak_allocated(int iteration) const {
  Bytes peak;
  for (const SpanPeaks& span : spans) {
    if (span.iteration == iteration) peak = std::max(peak, span.allocated);
  }
  return peak;
}

ReplayResult replay(const Trace& trace, Allocator& allocator, const WorkspaceModel* workspaces) {
  return Replayer(trace, allocator, workspaces).run();
}

}  // namespace memfathom

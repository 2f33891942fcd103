#include "estimator/run/simulated_memory.h"

#include <fmt/format.h>

#include <algorithm>

#include "kernels/memory/allocator/bare_allocator.h"
#include "kernels/memory/allocator/caching_allocator.h"
#include "kernels/memory/allocator/forwarding_allocator.h"

namespace memfathom {
namespace {

class CeilingAllocator final : public ForwardingAllocator {
 public:
  CeilingAllocator(Allocator& inner, Bytes ceiling)
      : ForwardingAllocator(inner), ceiling_(ceiling) {}

  Allocation allocate(Bytes size, int stream) override {
    const Allocation allocation = ForwardingAllocator::allocate(size, stream);
    const Bytes reserved{statistics().reserved_bytes.all.current};
    if (reserved <= ceiling_) return allocation;
    free(allocation);
    throw OutOfMemory(fmt::format("{} are reserved, more than the {} that were asked about",
                                  to_string(reserved), to_string(ceiling_)),
                      size, Bytes{statistics().allocated_bytes.all.current}, reserved);
  }

 private:
  Bytes ceiling_;
};

}  // namespace

SimulatedMemory::SimulatedMemory(const Job& job, const DryRunOptions& options)
    : policy_(options.policy) {
  if (job.allocator.backend == Backend::kNone) {
    allocator_ = std::make_unique<BareAllocator>();
    policy_.count_workspaces = false;
    policy_.in_place_shortcuts = false;
    return;
  }
  if (options.device_memory) segments_ = ArithmeticSegments(*options.device_memory);
  allocator_ =
      std::make_unique<CachingAllocator>(segments_, parse_allocator_options(job.allocator.options));
  if (options.ceiling) below_ = std::make_unique<CeilingAllocator>(*allocator_, *options.ceiling);
}

void note_peaks(Ledger& ledger, const AllocatorStatistics& statistics, DryRun& run) {
  ledger.begin_phase("end", 0);
  run.phases.assign(ledger.phases().begin(), ledger.phases().end() - 1);
  run.modules = ledger.module_names();
  const int last =
      std::max_element(run.phases.begin(), run.phases.end(), [](const auto& a, const auto& b) {
        return a.iteration < b.iteration;
      })->iteration;
  const int steady = std::min(last, 2);
  std::int64_t peak = -1;
  for (const PhaseRecord& phase : run.phases) {
    if (phase.iteration == 1)
      run.first_allocated_peak = std::max(run.first_allocated_peak, Bytes{phase.allocated_peak});
    if (phase.iteration < steady || phase.allocated_peak <= peak) continue;
    peak = phase.allocated_peak;
    run.at_peak = phase.live_at_peak;
  }
  run.allocated_peak = Bytes{std::max<std::int64_t>(peak, 0)};
  run.reserved_peak = std::max(Bytes{statistics.reserved_bytes.all.peak}, run.allocated_peak);
  run.retries = statistics.num_alloc_retries;
}

}  // namespace memfathom

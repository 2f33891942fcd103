// Simulated memory: the allocator that a job asks for, over arithmetic, and what its run peaked at.
#pragma once

#include <memory>

#include "estimator/run/dry_run.h"
#include "kernels/memory/allocator/allocator.h"
#include "kernels/memory/allocator/arithmetic_segments.h"

namespace memfathom {

class SimulatedMemory {
 public:
  SimulatedMemory(const Job& job, const DryRunOptions& options);

  Allocator& allocator() { return below_ ? *below_ : *allocator_; }
  const FrameworkPolicy& policy() const { return policy_; }  // what the framework does over it

 private:
  ArithmeticSegments segments_;
  FrameworkPolicy policy_;
  std::unique_ptr<Allocator> allocator_;
  std::unique_ptr<Allocator> below_;  // the same, watched for the ceiling where there is one
};

// Ends the ledger's last phase; phases, modules and peaks of the run are taken from it.
void note_peaks(Ledger& ledger, const AllocatorStatistics& statistics, DryRun& run);

}  // namespace memfathom

// Campaign: measures workloads one after another, each sample in a process of its own.
#pragma once

#include <atomic>
#include <functional>
#include <string>

#include "profiler/plan.h"
#include "profiler/probe_process.h"

namespace memfathom {

struct CampaignOptions {
  std::string device;
  ProbeProgram program;
  Bytes ceiling;
  std::chrono::milliseconds limit{60'000};  // of one probe
  double budget_seconds = 60;
  int max_repeats = 3;
  double small_spread = 0.005;
  int max_retakes = 2;  // of a disturbed sample
  std::string trace;    // of the first workload; empty: none
};

// Asks a probe what the device is and how much of it is free. Throws Error(kEnvironment) with the
// probe's own sentence when it cannot tell.
ProbeReply query_environment(const ProbeProgram& program, const std::string& device,
                             std::chrono::milliseconds limit);

// One workload, repeated until the readings agree, `seconds` are spent or they are enough. The
// sample is that of the median reading; a failure ends the repeats and is the sample.
Sample measure_workload(const Workload& workload, const CampaignOptions& options, double seconds);

// All of `workloads` in order; `taken` is called with each sample as it is there and may throw to
// end the run. Stops before the next workload once `stop` is set. Returns how many were taken.
int measure_all(const std::vector<Workload>& workloads, const CampaignOptions& options,
                const std::function<void(const Sample&)>& taken, const std::atomic<bool>& stop);

}  // namespace memfathom

// Campaign: measures workloads one after another, each sample in a separate process.
#pragma once

#include <atomic>
#include <functional>
#include <string>
#include <vector>

#include "profiler/driver_records.h"
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
  // How long the whole GPU's use may take to return to what it was before a probe.
  std::chrono::milliseconds return_limit{2'000};
  std::string trace;                            // of the first workload; empty: none
  const std::atomic<bool>* stop_now = nullptr;  // once set, the running probe is killed
  // After a workload's readings, one more with CUPTI's records of the driver's allocations, which
  // show peaks between two readings (driver_pass.h).
  bool driver_records = false;
  // Receives the records of a workload; and a sentence, why there are none.
  std::function<void(const Sample&, const DriverRecords&, const std::vector<StageReading>&)>
      recorded;
  std::function<void(const std::string&)> unrecorded;
};

// What a probe is asked for a workload; attempts differ in the noise of a simulated GPU alone.
ProbeRequest request_of(const Workload& workload, const CampaignOptions& options, int attempt);

// Starts a probe that reports the device and its free memory. Throws Error(kEnvironment) with the
// probe's message if it fails.
ProbeReply query_environment(const ProbeProgram& program, const std::string& device,
                             std::chrono::milliseconds limit);

// Measures one workload until the readings agree, `seconds` are spent or the maximum count is
// reached. Returns the sample of the median reading; a failure ends the repeats and is returned.
Sample measure_workload(const Workload& workload, const CampaignOptions& options, double seconds);

// Measures `workloads` in order and calls `taken` with each sample; `taken` may throw to end the
// run. Stops before the next workload once `stop` is set, and drops the current one if
// options.stop_now is. Returns the number of samples taken.
int measure_all(const std::vector<Workload>& workloads, const CampaignOptions& options,
                const std::function<void(const Sample&)>& taken, const std::atomic<bool>& stop);

}  // namespace memfathom

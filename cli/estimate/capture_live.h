// capture --live: the script on this machine's GPU, with PyTorch's own record of its allocator,
// beside the recording that was made without a GPU.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "cli/command.h"
#include "core/sample.h"
#include "estimator/answer/estimate.h"
#include "kernels/memory/trace/compare_histories.h"

namespace memfathom {

// What the GPU and PyTorch's allocator said of the script.
struct LiveRun {
  std::string gpu;  // as the driver names it
  std::string ended;
  std::int64_t steps = 0;
  bool fits = true;
  Bytes memory, allocated_peak, reserved_peak, device_peak;
  std::string torch, cuda;
};

// Runs the script until its steps are done; `snapshot` receives PyTorch's record. Nothing if the
// script raised, whose traceback is then on standard error. Throws Error(kEnvironment) without a
// GPU.
std::optional<LiveRun> run_live(const std::string& python, std::int64_t iterations,
                                const std::string& snapshot,
                                const std::vector<std::string>& command);

// The GPU's name in `memfathom gpus`; empty if it is not listed.
std::string listed_gpu(const LiveRun& run);

// The peaks as observations of a job (JSON).
std::vector<Observation> observations_of(const LiveRun& run, const std::string& job);

// The run beside its estimate and the comparison of its allocations with the recording's.
std::string live_text(const LiveRun& run, const Estimate& estimate,
                      const HistoryComparison& history);
nlohmann::ordered_json live_json(const LiveRun& run, const HistoryComparison& history);

}  // namespace memfathom

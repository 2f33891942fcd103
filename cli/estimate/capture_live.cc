#include "cli/estimate/capture_live.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "cli/estimate/torch_recording.h"
#include "cli/observe/stored_observations.h"
#include "cli/text/history_text.h"
#include "core/error.h"
#include "core/gpus.h"

namespace memfathom {
namespace {

constexpr int kRaised = 2;  // exit codes of memfathom.torch.live
constexpr int kNoGpu = 5;

LiveRun read_run(const nlohmann::json& told) {
  LiveRun run;
  const auto bytes = [&](const char* key) { return Bytes{told.value(key, std::int64_t{0})}; };
  run.gpu = told.value("gpu", "");
  run.ended = told.value("ended", "");
  run.steps = told.value("steps", std::int64_t{0});
  run.fits = told.value("fits", true);
  run.memory = bytes("memory_bytes");
  run.allocated_peak = bytes("allocated_peak_bytes");
  run.reserved_peak = bytes("reserved_peak_bytes");
  run.device_peak = bytes("device_peak_bytes") - bytes("device_before_bytes");
  run.torch = told.value("torch", "");
  run.cuda = told.value("cuda", "");
  return run;
}

}  // namespace

std::optional<LiveRun> run_live(const std::string& python, std::int64_t iterations,
                                const std::string& snapshot,
                                const std::vector<std::string>& command) {
  const RecordingFile told("", ".json");
  std::vector<std::string> words{
      "live", "-o", snapshot, "--iterations", std::to_string(iterations), "--told", told.path()};
  words.insert(words.end(), command.begin(), command.end());
  const int code = run_with_torch(python, words);
  if (code == kRaised) return std::nullopt;
  if (code == kNoGpu) {
    throw Error(ErrorKind::kEnvironment,
                "capture --live needs a GPU that PyTorch sees (nvidia-smi, "
                "torch.cuda.is_available()); without --live the script is recorded without one");
  }
  const nlohmann::json said = told_in(told);
  if (code != 0 || !said.is_object() || said.value("steps", 0) == 0) {
    throw Error(ErrorKind::kEnvironment,
                fmt::format("{} ended with exit code {} before a step was recorded on the GPU; see "
                            "its messages above",
                            command.front(), code));
  }
  return read_run(said);
}

std::string listed_gpu(const LiveRun& run) {
  const Gpu* gpu = find_gpu_of_driver(run.gpu, run.memory);
  return gpu != nullptr ? std::string(gpu->name) : "";
}

std::vector<Observation> observations_of(const LiveRun& run, const std::string& job) {
  Observation seen;
  seen.job = job;
  seen.gpu = listed_gpu(run).empty() ? run.gpu : listed_gpu(run);
  seen.framework = "pytorch";
  seen.framework_version = run.torch;
  seen.cuda = run.cuda;
  seen.source = "memfathom capture --live";
  if (!run.fits) {
    seen.fits = false;
    seen.note = run.ended;
    return {seen};
  }
  std::vector<Observation> observations;
  for (const auto& [metric, bytes] : {std::pair{Metric::kAllocated, run.allocated_peak},
                                      std::pair{Metric::kReserved, run.reserved_peak},
                                      std::pair{Metric::kDevice, run.device_peak}}) {
    seen.metric = metric;
    seen.bytes = bytes;
    seen.note = metric == Metric::kDevice
                    ? "the highest of cudaMemGetInfo's readings, minus what was used before"
                    : "";
    observations.push_back(seen);
  }
  return observations;
}

std::string live_text(const LiveRun& run, const Estimate& estimate,
                      const HistoryComparison& history) {
  std::string text = fmt::format("\non {}: {} steps, ended {}\n", run.gpu, run.steps, run.ended);
  if (run.fits) {
    for (const Observation& seen : observations_of(run, ""))
      text += estimated_vs_observed(estimate, seen) + '\n';
  }
  return text + history_text(history);
}

nlohmann::ordered_json live_json(const LiveRun& run, const HistoryComparison& history) {
  return {{"gpu", run.gpu},
          {"steps", run.steps},
          {"ended", run.ended},
          {"fits", run.fits},
          {"allocated_peak_bytes", run.allocated_peak.count()},
          {"reserved_peak_bytes", run.reserved_peak.count()},
          {"device_peak_bytes", run.device_peak.count()},
          {"history", history_json(history)}};
}

}  // namespace memfathom

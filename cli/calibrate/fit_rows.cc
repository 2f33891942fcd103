#include "cli/calibrate/fit_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <system_error>

#include "cli/calibrate/estimator_runner.h"
#include "core/architecture.h"
#include "core/collectives.h"
#include "core/error.h"
#include "core/fitted_workspaces.h"
#include "core/gpus.h"
#include "core/json_value.h"
#include "estimator/run/dry_run.h"
#include "estimator/run/replayed_job.h"
#include "estimator/run/stack_versions.h"
#include "kernels/devices/cpu/open.h"
#include "kernels/workspaces/architectures.h"
#include "kernels/workspaces/cached_workspace_model.h"
#include "kernels/workspaces/convolution_text.h"
#include "profiler/plan_tables.h"

namespace memfathom {
namespace {

using namespace literals;

// The step in which the device's memory is measured: a page of the host, or of the driver.
Bytes page_size(DeviceKind kind) {
  switch (kind) {
    case DeviceKind::kCpu: return 4_KiB;
    case DeviceKind::kCuda:
    case DeviceKind::kVirtual:
    case DeviceKind::kDry: break;
  }
  return 2_MiB;
}

WorkspaceRow workspace_row(const WorkspaceRequest& request) {
  WorkspaceRow row;
  row.library = request.library;
  row.operation = request.operation;
  row.features = request.shape.starts_with("fft")
                     ? features_of(parse_fft_query(request.shape))
                     : features_of(parse_convolution_query(request.shape));
  row.measured = request.bytes;
  return row;
}

// Distinct requests of the samples used in the fit.
std::vector<WorkspaceRow> workspace_rows(const std::vector<StoredSample>& samples) {
  std::map<std::string, const WorkspaceRequest*> distinct;
  for (const StoredSample& stored : samples) {
    if (stored.sample.validation) continue;
    for (const WorkspaceRequest& request : stored.sample.workspaces) {
      // The replay already models attention's temporaries; there is nothing to fit.
      if (request.shape.starts_with("attention")) continue;
      distinct.emplace(fmt::format("{} {}", to_string(request.library), request.shape), &request);
    }
  }
  std::vector<WorkspaceRow> rows;
  rows.reserve(distinct.size());
  for (const auto& [key, request] : distinct) rows.push_back(workspace_row(*request));
  return rows;
}

// Uses the newest sample of each job.
std::vector<StoredSample> newest_per_job(const Store& store, const Environment& environment,
                                         int* failed) {
  SampleFilter filter;
  filter.device_key = environment.device_key();
  filter.stack_key = environment.stack_key();
  filter.include_virtual = environment.is_virtual();
  std::map<std::string, std::string> started;  // of runs
  for (const Run& run : store.runs()) started[run.id] = run.started;
  std::map<std::string, StoredSample> newest;
  for (StoredSample& stored : store.samples(filter)) {
    if (stored.sample.status != SampleStatus::kOk || !stored.sample.device_peak) {
      ++*failed;
      continue;
    }
    const auto at = newest.find(stored.sample.job);
    if (at == newest.end() || started[at->second.run] <= started[stored.run]) {
      std::string job = stored.sample.job;
      newest.insert_or_assign(std::move(job), std::move(stored));
    }
  }
  std::vector<StoredSample> samples;
  for (auto& [job, stored] : newest) samples.push_back(std::move(stored));
  std::sort(samples.begin(), samples.end(), [](const StoredSample& a, const StoredSample& b) {
    return a.sample.workload < b.sample.workload;
  });
  return samples;
}

FitRow fit_row(const StoredSample& stored, const DryRunOptions& options) {
  FitRow row;
  row.id = stored.sample.workload;
  row.family = stored.sample.family;
  row.measured = stored.sample.device_peak;
  row.replay = replayed(run_dry(job_of(stored.sample.job), options));
  row.validation = stored.sample.validation;
  return row;
}

// How much a stage added to the one before it; nullopt if the sample has not both.
std::optional<Bytes> added_by(const Sample& sample, std::string_view stage) {
  const auto at = std::find_if(sample.stages.begin(), sample.stages.end(),
                               [&](const StageReading& one) { return one.stage == stage; });
  if (at == sample.stages.begin() || at == sample.stages.end()) return std::nullopt;
  return at->device_used - std::prev(at)->device_used;
}

// Moves the samples of several ranks out of `samples`: they have no job to replay.
void take_collectives(std::vector<StoredSample>& samples, std::vector<CollectivesRow>& rows) {
  std::erase_if(samples, [&](const StoredSample& stored) {
    const Sample& sample = stored.sample;
    if (sample.family != kCollectivesFamily) return false;
    const std::optional<Bytes> first = added_by(sample, "communicator");
    const std::optional<Bytes> second = added_by(sample, "second_communicator");
    if (!first || !second) return true;
    const nlohmann::json job = parse_json_value(sample.job, sample.workload);
    CollectivesRow row;
    row.ranks = job.at("collectives").at("ranks").get<int>();
    if (const nlohmann::json& channels = job.at("collectives").at("channels"); !channels.is_null())
      row.channels = channels.get<int>();
    row.communicator = *first;
    row.second_communicator = *second;
    row.ddp = added_by(sample, "ddp");
    row.fsdp = added_by(sample, "fsdp");
    rows.push_back(row);
    return true;
  });
}

// Compiled jobs and CUDA graphs are measured; no replay says what they would take.
void leave_out_unreplayed(std::vector<StoredSample>& samples, std::vector<std::string>& notes) {
  const std::size_t left_out = std::erase_if(samples, [](const StoredSample& stored) {
    return std::ranges::find(kUnreplayedFamilies, stored.sample.family) !=
           kUnreplayedFamilies.end();
  });
  if (left_out > 0) {
    notes.push_back(fmt::format(
        "{} samples of compiled jobs and CUDA graphs are not part of the fit: neither is modelled",
        left_out));
  }
}

// The folder of the cuDNN that PyTorch loaded in the newest run of this environment that knows it.
// Empty: not known, or not on this machine.
std::string loaded_cudnn_directory(const Store& store, const Environment& environment,
                                   std::vector<std::string>& notes) {
  std::string directory;
  std::string started;
  for (const Run& run : store.runs()) {
    if (run.environment.device_key() != environment.device_key() ||
        run.environment.stack_key() != environment.stack_key() || run.cudnn_directory.empty() ||
        run.started < started)
      continue;
    directory = run.cudnn_directory;
    started = run.started;
  }
  if (directory.empty()) {
    notes.emplace_back(
        "the samples do not say which cuDNN PyTorch loaded; the system's is asked for workspaces");
    return {};
  }
  std::error_code failure;
  if (std::filesystem::is_directory(directory, failure)) return directory;
  notes.push_back(
      fmt::format("the cuDNN that PyTorch loaded ({}) is not on this machine; the system's is "
                  "asked for workspaces",
                  directory));
  return {};
}

}  // namespace

// PyTorch's library requests are not visible; queries cuDNN, as estimates do.
std::unique_ptr<WorkspaceModel> pytorch_workspaces(const Environment& environment,
                                                   const std::string& cudnn_directory,
                                                   std::vector<std::string>& notes) {
  const int capability = compute_capability(environment.architecture);
  const NearestArchitecture nearest = nearest_known_architecture(capability);
  if (nearest.differs) {
    notes.push_back(fmt::format("cuDNN workspaces of {} are unknown; using those of {}",
                                environment.architecture, nearest.architecture));
  }
  WorkspaceModelOptions options;
  options.gpu = nearest.architecture;
  options.legacy_cudnn = uses_older_cudnn_api(torch_of(environment.framework_version, capability));
  options.cache_directory = default_cache_directory();
  options.library_directory = cudnn_directory;
  OpenedWorkspaceModel opened = open_workspace_model(options);
  if (!opened.cudnn_version.empty() && opened.cudnn_version != environment.cudnn) {
    notes.push_back(fmt::format(
        "cuDNN {} is asked for workspaces; PyTorch ran with cuDNN {}", opened.cudnn_version,
        environment.cudnn.empty() ? "of unknown version" : environment.cudnn));
  }
  return std::move(opened.model);
}

FitOptions fit_options(const Environment& environment) {
  FitOptions options;
  options.environment = environment;
  options.quantum = page_size(environment.kind());
  options.name = fmt::format("{}/{}", calibration_gpu_name(environment), environment.framework);
  return options;
}

std::string calibration_gpu_name(const Environment& environment) {
  switch (environment.kind()) {
    case DeviceKind::kCpu: return "cpu";
    case DeviceKind::kCuda:
    case DeviceKind::kVirtual:
    case DeviceKind::kDry: break;
  }
  const Gpu* gpu = find_gpu_of_driver(environment.gpu, environment.memory_total);
  return gpu != nullptr ? std::string(gpu->name) : environment.gpu;
}

FitInput fit_input(const Store& store, const Environment& environment, const FitOptions& options) {
  FitInput input;
  std::vector<StoredSample> samples = newest_per_job(store, environment, &input.failed);
  take_collectives(samples, input.collectives);
  leave_out_unreplayed(samples, input.notes);
  input.workspaces = fit_workspaces(workspace_rows(samples), options);

  std::unique_ptr<Device> cpu;
  std::unique_ptr<WorkspaceModel> asked;
  Calibration models;
  models.coefficients = input.workspaces.coefficients;
  const FittedWorkspaces fitted(models);
  DryRunOptions replay;
  replay.policy = policy_of(environment);
  replay.workspaces = &fitted;
  if (samples.empty()) return input;
  switch (environment.kind()) {
    case DeviceKind::kCpu:
      cpu = open_cpu_device();
      replay.workspaces = &cpu->workspaces();
      break;
    case DeviceKind::kCuda:
      if (environment.framework != "pytorch") break;
      asked = pytorch_workspaces(
          environment, loaded_cudnn_directory(store, environment, input.notes), input.notes);
      replay.workspaces = asked.get();
      break;
    case DeviceKind::kVirtual:
    case DeviceKind::kDry: break;
  }
  for (const StoredSample& stored : samples) {
    try {
      input.rows.push_back(fit_row(stored, replay));
    } catch (const Error& error) {
      input.skipped.push_back(fmt::format("{}: {}", stored.sample.workload, error.what()));
    }
  }
  return input;
}

}  // namespace memfathom

#include "cli/estimation.h"

#include <fmt/format.h>

#include "cli/database.h"
#include "core/error.h"
#include "db/published.h"
#include "db/store.h"
#include "estimator/gpus.h"
#include "estimator/run/stack_versions.h"
#include "kernels/workspace/cached_workspace_model.h"
#include "kernels/workspace/workspace_store.h"

namespace memfathom {
namespace {

// Jobs that name no card run on what most people of this field have.
constexpr int kAssumedCapability = 80;

int capability_of(const Job& job) {
  if (job.target.gpu.empty()) return kAssumedCapability;
  const int capability = gpu_named(job.target.gpu, "target.gpu").compute_capability();
  return capability > 0 ? capability : kAssumedCapability;
}

std::optional<Bytes> capacity_of(const Job& job) {
  if (job.target.memory) return job.target.memory;
  if (!job.target.gpu.empty()) return gpu_named(job.target.gpu, "target.gpu").memory();
  return std::nullopt;
}

std::string framework_of(const Job& job) {
  return job.target.stack.framework.empty() ? "pytorch" : job.target.stack.framework;
}

}  // namespace

Estimation::Estimation(const Context& context) : database_(database_path(context)) {
  const std::optional<Store> store = Store::open_if_exists(database_);
  if (!store) return;
  for (Calibration& calibration : store->calibrations()) {
    if (calibration.usable && !calibration.environment.is_virtual())
      stored_.push_back(std::move(calibration));
  }
}

Estimation::~Estimation() = default;

Estimation::Chosen Estimation::choose_calibration(const Job& job) const {
  const std::string& wanted = job.target.calibration;
  if (wanted == "none") return {};
  const std::string card = job.target.gpu.empty()
                               ? std::string()
                               : std::string(gpu_named(job.target.gpu, "target.gpu").name);
  const std::string key = fmt::format("{}|{}|{}", wanted, card, framework_of(job));
  const std::lock_guard lock(mutex_);
  const auto known = chosen_.find(key);
  if (known != chosen_.end()) return known->second;

  Chosen chosen;
  const std::string name =
      wanted == "auto" ? fmt::format("{}/{}", card, framework_of(job)) : wanted;
  for (const Calibration& calibration : stored_) {
    if (calibration.name == name || calibration.id == name)
      chosen = {calibration, CalibrationStatus::kCalibrated};
  }
  if (!chosen.calibration) {
    chosen = {find_published_calibration(name), CalibrationStatus::kPublished};
    if (!chosen.calibration && wanted != "auto") {
      throw Error(ErrorKind::kInput,
                  fmt::format("target.calibration \"{}\" is neither in the database {} nor "
                              "published; `memfathom calibrations list` shows what is",
                              wanted, database_.string()));
    }
    if (!chosen.calibration)
      chosen = {find_published_calibration("default/" + framework_of(job)),
                CalibrationStatus::kNone};
  }
  chosen_.emplace(key, chosen);
  return chosen;
}

const WorkspaceModel* Estimation::workspaces_for(const Job& job,
                                                 const std::string& torch_version) const {
  if (job.allocator.backend == Backend::kNone) return nullptr;
  WorkspaceModelOptions options;
  options.gpu = fmt::format("sm_{}", capability_of(job));
  options.cache_directory = default_cache_directory();
  options.older = asks_older_cudnn(torch_version, capability_of(job));
  const std::lock_guard lock(mutex_);
  std::unique_ptr<WorkspaceModel>& model = models_[options.gpu + (options.older ? " older" : "")];
  if (!model) {
    try {
      model = open_workspace_model(options).model;
    } catch (const Error&) {
      // Older than anything cuDNN plans for today: the nearest architecture it does plan for.
      options.gpu = capability_of(job) < 75 ? "sm_75" : "sm_80";
      model = open_workspace_model(options).model;
    }
  }
  return model.get();
}

DryRun Estimation::run(const Job& job, const Chosen& chosen) const {
  DryRunOptions options;
  std::string version = job.target.stack.version;
  if (version.empty() && chosen.calibration)
    version = chosen.calibration->environment.framework_version;
  options.policy = FrameworkPolicy::for_stack(version, capability_of(job));
  options.workspaces = workspaces_for(job, version);
  Job with_versions = job;
  apply_stack(with_versions, options.policy);
  return run_dry(with_versions, options);
}

DryRun Estimation::dry_run(const Job& job) const { return run(job, choose_calibration(job)); }

Estimate Estimation::answer(const Job& job) const {
  const Chosen chosen = choose_calibration(job);
  const DryRun run_result = run(job, chosen);
  EstimateContext context;
  context.calibration = chosen.calibration ? &*chosen.calibration : nullptr;
  context.status = chosen.status;
  context.capacity = capacity_of(job);
  return make_estimate(job, run_result, context);
}

}  // namespace memfathom

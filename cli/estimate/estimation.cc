#include "cli/estimate/estimation.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <tuple>
#include <utility>

#include "cli/database.h"
#include "core/error.h"
#include "db/lookup.h"
#include "db/published.h"
#include "db/store.h"
#include "estimator/gpus.h"
#include "estimator/run/stack_versions.h"
#include "kernels/memory/allocator/allocator.h"
#include "kernels/workspaces/cached_workspace_model.h"
#include "kernels/workspaces/workspace_store.h"

namespace memfathom {
namespace {

// Jobs that name no GPU run on what most people of this field have, or on a GPU without TF32,
// for which cuDNN's choices in fp32 differ most.
constexpr int kAssumedCapability = 80;
constexpr int kWithoutTf32 = 75;

// Words of target.calibration that are no calibration's.
constexpr const char* kBestMatch = "auto";
constexpr const char* kNoCalibration = "none";

std::optional<Bytes> capacity_of(const Job& job) {
  if (job.target.memory) return job.target.memory;
  if (!job.target.gpu.empty()) return gpu_named(job.target.gpu, "target.gpu").memory();
  return std::nullopt;
}

// What of a calibration's environment is not as where the job runs; what is not known differs from
// nothing.
std::string difference(const Environment& calibrated, const Job& job, const LiveGpu* live) {
  const StackSpec& stack = job.target.stack;
  const std::string driver = live != nullptr ? live->driver : std::string();
  const std::array<std::tuple<const char*, const std::string&, const std::string&>, 4> parts{
      {{"the driver", calibrated.driver, driver},
       {"CUDA", calibrated.cuda, stack.cuda},
       {"cuDNN", calibrated.cudnn, stack.cudnn},
       {"the framework", calibrated.framework_version, stack.version}}};
  for (const auto& [what, then, now] : parts) {
    // "2.6" of a job is any 2.6.x.
    if (then.empty() || now.empty() || then == now || then.starts_with(now + ".")) continue;
    return fmt::format("{} was {} and is {}", what, then, now);
  }
  return "";
}

// As calibrations are named after it: a GPU of this machine that is in no table (a new one, an
// instance of a divided one) by what its driver calls it.
std::string target_gpu_name(const Job& job, const LiveGpu* live) {
  if (!job.target.gpu.empty()) return std::string(gpu_named(job.target.gpu, "target.gpu").name);
  return live != nullptr ? live->product : std::string();
}

std::string framework_of(const Job& job) {
  return job.target.stack.framework.empty() ? "pytorch" : job.target.stack.framework;
}

// A published calibration comes from runs whose cuDNN nobody wrote down, and one version's choices
// say little about another's: neither the installed library nor any other single one is asked.
bool is_of_unrecorded_cudnn(const Job& job, const std::optional<Calibration>& calibration,
                            CalibrationStatus status) {
  return status == CalibrationStatus::kPublished && calibration->environment.cudnn.empty() &&
         job.target.stack.cudnn.empty() && job.allocator.backend == Backend::kCaching;
}

std::string older_gpu_sentence(const std::string& version) {
  return fmt::format(
      "the card is older than Turing and nobody names its stack: PyTorch {} of its time is assumed "
      "(zero_grad() keeps gradients, softmax its input, cuDNN is asked the older way); "
      "target.stack.version says otherwise",
      version);
}

std::string published_stack_sentence(const std::string& version) {
  return fmt::format(
      "PyTorch {} of the published runs, with libraries of its time; target.stack (version, "
      "transformers, ...) names yours",
      version);
}

// What is reserved depends on the order and sizes of workspaces in a way that no workspace between
// two others shows: the replays are averaged, not the workspaces. `why` takes the two figures.
void average(DryRun& run, const DryRun& other, fmt::format_string<std::string, std::string> why) {
  const Bytes low = std::min(run.reserved_peak, other.reserved_peak);
  const Bytes high = std::max(run.reserved_peak, other.reserved_peak);
  if (low == high) return;
  run.reserved_uncertainty = Bytes{(high - low).count() / 2};
  run.reserved_peak = std::max(low + run.reserved_uncertainty, run.allocated_peak);
  run.assumptions.push_back(fmt::format(why, to_string(low), to_string(high)));
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

const LiveGpu* Estimation::live_target(const Job& job) const {
  const TargetSpec& target = job.target;
  if (target.device.empty() && (target.memory || !target.gpu.empty())) return nullptr;
  const std::lock_guard lock(mutex_);
  const auto known = live_.find(target.device);
  if (known != live_.end()) return known->second ? &*known->second : nullptr;
  std::optional<LiveGpu> found =
      target.device.empty() ? first_live_gpu() : std::optional(live_gpu(target.device));
  if (found) live_.emplace(found->device, found);
  const auto at = live_.insert_or_assign(target.device, std::move(found)).first;
  return at->second ? &*at->second : nullptr;
}

bool Estimation::has_known_architecture(const Job& job) const {
  return !job.target.gpu.empty() || job.target.compute_capability > 0 ||
         live_target(job) != nullptr;
}

int Estimation::capability_of(const Job& job) const {
  int capability = job.target.compute_capability;
  if (capability > 0) return capability;
  if (!job.target.gpu.empty()) {
    capability = gpu_named(job.target.gpu, "target.gpu").compute_capability();
  } else if (const LiveGpu* live = live_target(job)) {
    capability = live->compute_capability;
  }
  return capability > 0 ? capability : kAssumedCapability;
}

Estimation::CalibrationChoice Estimation::choose_calibration(const Job& job) const {
  const std::string& wanted = job.target.calibration;
  if (wanted == kNoCalibration) return {};
  const std::string gpu = target_gpu_name(job, job.target.gpu.empty() ? live_target(job) : nullptr);
  const std::string key = fmt::format("{}|{}|{}", wanted, gpu, framework_of(job));
  const std::lock_guard lock(mutex_);
  const auto known = chosen_.find(key);
  if (known != chosen_.end()) return known->second;

  CalibrationChoice chosen =
      wanted == kBestMatch ? best_match(gpu, framework_of(job)) : named_calibration(wanted);
  chosen_.emplace(key, chosen);
  return chosen;
}

Estimation::CalibrationChoice Estimation::best_match(const std::string& gpu,
                                                     const std::string& framework) const {
  const std::string name = fmt::format("{}/{}", gpu, framework);
  const auto newest = std::find_if(stored_.rbegin(), stored_.rend(),
                                   [&](const Calibration& c) { return c.name == name; });
  if (newest != stored_.rend()) return {*newest, CalibrationStatus::kCalibrated, {}};
  if (std::optional<Calibration> published = find_published_calibration(name))
    return {std::move(published), CalibrationStatus::kPublished, {}};
  return {find_published_calibration("default/" + framework), CalibrationStatus::kNone, {}};
}

Estimation::CalibrationChoice Estimation::named_calibration(const std::string& word) const {
  const std::vector<Calibration>& published = published_calibrations();
  std::vector<NamedEntry> listed;  // a name's newest is the last
  for (const Calibration& calibration : published)
    listed.push_back({calibration.id, calibration.name});
  for (const Calibration& calibration : stored_)
    listed.push_back({calibration.id, calibration.name});
  const std::optional<std::size_t> found = find_by_name_or_id(listed, word, "calibrations");
  if (!found) {
    throw Error(ErrorKind::kInput,
                fmt::format("target.calibration \"{}\" is neither a usable calibration of the "
                            "database {} nor a published one; `memfathom calibrations list` shows "
                            "them",
                            word, database_.string()));
  }
  if (*found < published.size()) return {published[*found], CalibrationStatus::kPublished, {}};
  return {stored_[*found - published.size()], CalibrationStatus::kCalibrated, {}};
}

void Estimation::require_calibration(const std::string& word) const {
  if (word != kBestMatch && word != kNoCalibration) named_calibration(word);
}

const WorkspaceModel* Estimation::workspaces_for(int capability, const std::string& torch_version,
                                                 const FittedTable* table) const {
  WorkspaceModelOptions options;
  options.gpu = fmt::format("sm_{}", capability);
  options.cache_directory = default_cache_directory();
  options.legacy_cudnn = uses_older_cudnn_api(torch_version, capability);
  if (table != nullptr) {
    options.query_cudnn = false;
    options.early_cudnn9 = true;
    options.table = table;
  }
  const std::lock_guard lock(mutex_);
  std::unique_ptr<WorkspaceModel>& model =
      models_[fmt::format("{} {} {}", options.gpu, options.legacy_cudnn,
                          table != nullptr ? table->provenance.cudnn_version : "installed")];
  if (!model) {
    try {
      model = open_workspace_model(options).model;
    } catch (const Error&) {
      // Older than anything cuDNN plans for today: the nearest architecture it does plan for.
      options.gpu = capability < 75 ? "sm_75" : "sm_80";
      model = open_workspace_model(options).model;
    }
  }
  return model.get();
}

DryRun Estimation::run(const Job& job, const CalibrationChoice& chosen,
                       DryRunOptions options) const {
  std::string version = job.target.stack.version;
  const bool assumes_version = version.empty() && chosen.calibration;
  if (assumes_version) version = chosen.calibration->environment.framework_version;
  const int capability = capability_of(job);
  const std::string named = std::exchange(version, torch_of(version, capability));
  const bool is_older_card = version != named;
  options.policy = FrameworkPolicy::for_stack(version, capability);
  Job with_versions = job;
  // What took part in a published calibration's runs is of their time. Quantized weights never did.
  const bool from_published_runs =
      assumes_version && chosen.status == CalibrationStatus::kPublished;
  apply_stack(
      with_versions, options.policy,
      from_published_runs ? BitsandbytesRelease::kCurrent : BitsandbytesRelease::kContemporary);
  const auto run_with = [&](int planned_for, const FittedTable* table) {
    options.workspaces = job.allocator.backend == Backend::kNone
                             ? nullptr
                             : workspaces_for(planned_for, version, table);
    DryRun run = run_dry(with_versions, options);
    if (is_older_card) run.assumptions.push_back(older_gpu_sentence(version));
    if (from_published_runs && !named.empty())
      run.assumptions.push_back(published_stack_sentence(named));
    return run;
  };
  const bool is_unrecorded = is_of_unrecorded_cudnn(job, chosen.calibration, chosen.status);
  // The mean of two is above when one of them is above twice as much.
  if (options.ceiling && (is_unrecorded || !has_known_architecture(job)))
    options.ceiling = *options.ceiling * 2;
  if (is_unrecorded) {
    DryRun today = run_with(capability, &fitted_table_cudnn_9_19());
    if (!today.uses_cudnn) return today;
    options.timeline = nullptr;
    average(today, run_with(capability, &fitted_table_cudnn_9_8()),
            "the cuDNN of the published runs is not recorded: the reserved memory is the mean of "
            "{} and {}, to which the workspaces of cuDNN 9.8 and 9.19 lead");
    return today;
  }
  DryRun run = run_with(capability, nullptr);
  if (!run.uses_cudnn || options.workspaces == nullptr || has_known_architecture(job)) return run;
  options.timeline = nullptr;
  average(run, run_with(kWithoutTf32, nullptr),
          "no card is named: the reserved memory is the mean of {} and {}, to which cuDNN's "
          "workspaces lead on cards without TF32 and with it; target.gpu names yours");
  return run;
}

DryRun Estimation::run_unlimited(const Job& job, const CalibrationChoice& chosen,
                                 std::optional<Bytes> ceiling) const {
  DryRunOptions options;
  options.ceiling = ceiling;
  try {
    return run(job, chosen, options);
  } catch (const OutOfMemory& full) {
    if (ceiling) throw;
    throw Error(ErrorKind::kInput,
                fmt::format("the job takes more memory than anything can address ({} when it was "
                            "given up); check its batch, sequence, image and layer sizes",
                            to_string(full.reserved())));
  }
}

DryRun Estimation::dry_run(const Job& job) const { return run(job, choose_calibration(job)); }

Timeline Estimation::timeline(const Job& given) const {
  const LiveGpu* live = live_target(given);
  const Job job = live != nullptr ? with_live_gpu(*live, given) : given;
  Timeline timeline;
  DryRunOptions options;
  options.timeline = &timeline;
  run(job, choose_calibration(job), options);
  return timeline;
}

Estimate Estimation::answer(const Job& job, bool explains) const {
  return answer(job, AnswerOptions{explains, false, {}});
}

Estimate Estimation::estimate_as_run(const Job& job, bool explains) const {
  return answer(job, AnswerOptions{explains, true, {}});
}

EstimateFunction Estimation::search_function() const {
  return [this](const Job& job, std::optional<Bytes> ceiling) {
    return answer(job, AnswerOptions{false, false, ceiling});
  };
}

Estimate Estimation::answer(const Job& given, const AnswerOptions& question) const {
  const LiveGpu* live = live_target(given);
  const Job job = live != nullptr ? with_live_gpu(*live, given) : given;
  CalibrationChoice chosen = choose_calibration(job);
  if (chosen.status == CalibrationStatus::kCalibrated)
    chosen.stale = difference(chosen.calibration->environment, job, live);
  if (!chosen.stale.empty()) chosen.status = CalibrationStatus::kStale;
  EstimateContext context;
  context.calibration = chosen.calibration ? &*chosen.calibration : nullptr;
  context.status = chosen.status;
  context.capacity = capacity_of(job);
  context.explains = question.explains;
  Estimate estimate = make_estimate(job, run_unlimited(job, chosen, question.ceiling), context);
  const std::optional<Bytes> room =
      question.as_run ? memory_for_cache(job, estimate, context) : std::optional<Bytes>();
  if (room) {
    try {
      DryRunOptions options;
      options.device_memory = room;
      const DryRun squeezed = run(job, chosen, options);
      context.wanted = estimate.totals.device_peak;
      estimate = make_estimate(job, squeezed, context);
      estimate.assumptions.push_back(
          fmt::format("the card is full: the allocator gives its cache back ({} times in the "
                      "replay) and goes on, which is slow; on a larger card the job takes {}",
                      squeezed.retries, to_string(context.wanted)));
    } catch (const OutOfMemory&) {
      // It would fail even so: the first answer stands.
    }
  }
  if (live != nullptr) estimate.assumptions.push_back(live->sentence());
  if (!chosen.stale.empty()) {
    estimate.warnings.push_back(
        fmt::format("the calibration {} is stale: {}; `memfathom calibrate` renews it",
                    chosen.calibration->name, chosen.stale));
  }
  if (!job.target.gpu.empty() && gpu_named(job.target.gpu, "target.gpu").vendor == "amd") {
    estimate.warnings.emplace_back(
        "AMD cards are known here as capacities only: kernels, workspaces and context are those of "
        "an NVIDIA card, and nothing is calibrated");
  }
  return estimate;
}

bool is_undecided(const Estimate& estimate) {
  return estimate.verdict.status == VerdictStatus::kTight ||
         estimate.calibration.status == CalibrationStatus::kNone;
}

}  // namespace memfathom

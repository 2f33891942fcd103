#include "cli/calibrate/fit_observations.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "api/local_session.h"
#include "cli/clock.h"
#include "cli/database.h"
#include "cli/job/job_source.h"
#include "core/document.h"
#include "core/error.h"
#include "core/gpus.h"
#include "estimator/run/replayed_job.h"
#include "estimator/run/stack_versions.h"

namespace memfathom {
namespace {

constexpr const char* kAllGpus = "all";
constexpr const char* kAnyGpu = "any NVIDIA GPU";
constexpr std::size_t kMaxRowsPerStack =
    60;  // more rows of one stack add nothing about another's constant

Environment environment_of(const ObservationFit& what, const Gpu* gpu) {
  Environment environment;
  environment.gpu = gpu != nullptr ? std::string(gpu->product) : kAnyGpu;
  environment.framework = "pytorch";
  environment.framework_version = what.framework_version;
  if (gpu == nullptr) return environment;
  environment.architecture = std::string(gpu->architecture);
  environment.memory_total = gpu->memory();
  return environment;
}

// Rows from one source on one GPU and stack share a constant.
std::string stack_of(const Observation& o) {
  return fmt::format("{}|{}|{}|{}|{}|{}", o.gpu, o.driver, o.cuda, o.cudnn, o.framework_version,
                     o.source);
}

Bytes capacity_of(const Job& job) {
  const Bytes total = job.target.memory        ? *job.target.memory
                      : job.target.gpu.empty() ? Bytes{}
                                               : gpu_named(job.target.gpu, "target.gpu").memory();
  return total - job.target.used_by_others;
}

// Replays an observation's job on the stack it was measured on.
FitRow row_of(const Observation& observation, const ObservationFit& what,
              const Estimator& estimator, int number) {
  Job job = complete_job(parse_json(observation.job, fmt::format("observation {}", number), 0)).job;
  for (const std::string& version : {observation.framework_version, what.framework_version}) {
    if (job.target.stack.version.empty()) job.target.stack.version = version;
  }
  // An unrecorded stack is of the GPU's time.
  if (const Gpu* gpu = find_gpu(observation.gpu); gpu != nullptr)
    job.target.stack.version = torch_of(job.target.stack.version, gpu->compute_capability());
  job.target.calibration = "none";
  const DryRun run = estimator.dry_run(job);
  FitRow row;
  row.id = fmt::format("{}/{}", observation.group, number);
  row.family = job_group(job, run);
  row.group = row.family;
  row.metric = observation.metric;
  row.measured = observation.bytes;
  row.fits = observation.fits;
  if (row.is_censored()) row.capacity = capacity_of(job);
  row.tag = Source::kPublished;
  row.replay = replayed(run);
  return row;
}

struct IndexedObservation {
  int number;
  std::string id;
  Observation observation;
};

// Takes up to the same number of rows from each stack, evenly spaced.
std::vector<IndexedObservation> balanced_by_stack(const std::vector<IndexedObservation>& all) {
  std::map<std::string, std::vector<const IndexedObservation*>> stacks;
  for (const IndexedObservation& one : all) stacks[stack_of(one.observation)].push_back(&one);
  std::vector<IndexedObservation> even;
  for (const auto& [stack, own] : stacks) {
    const std::size_t taken = std::min(own.size(), kMaxRowsPerStack);
    for (std::size_t i = 0; i < taken; ++i) even.push_back(*own[i * own.size() / taken]);
  }
  return even;
}

std::vector<IndexedObservation> wanted_observations(const Store& store, const Gpu* gpu) {
  std::vector<IndexedObservation> wanted;
  int number = 0;
  for (StoredObservation& stored : store.stored_observations()) {
    ++number;
    if (stored.removal || stored.observation.metric != Metric::kDevice) continue;
    if (gpu == nullptr || stored.observation.gpu == gpu->name)
      wanted.push_back({number, std::move(stored.id), std::move(stored.observation)});
  }
  return gpu == nullptr ? balanced_by_stack(wanted) : wanted;
}

FitInput input_of(const ObservationFit& what, const Gpu* gpu, const Store& store,
                  const Context& context) {
  const LocalSession session(find_database(context));
  const Estimator& estimator = session.estimator();
  FitInput input;
  for (const auto& [number, id, observation] : wanted_observations(store, gpu)) {
    try {
      input.rows.push_back(row_of(observation, what, estimator, number));
      if (gpu == nullptr) input.rows.back().family = stack_of(observation);
    } catch (const Error& error) {
      input.skipped.push_back(fmt::format("observation {}: {}", id.substr(0, 12), error.what()));
    }
  }
  return input;
}

// Values for an unmeasured GPU are defaults, even if fitted to measurements of others.
void tag(Calibration& calibration, Source source) {
  calibration.source = source;
  for (Coefficient& coefficient : calibration.coefficients) {
    if (!coefficient.prior_only) coefficient.source = source;
  }
}

}  // namespace

FitResult fit_observations(const ObservationFit& what, Store& store, const Context& context) {
  const Gpu* gpu = what.gpus == kAllGpus ? nullptr : &gpu_named(what.gpus, "--observations");
  FitResult fitted;
  fitted.input = input_of(what, gpu, store, context);
  for (const std::string& sentence : fitted.input.skipped) context.detail(sentence);
  if (!fitted.input.skipped.empty())
    context.warn(fmt::format("{} observations could not be replayed; use --verbose to list them",
                             fitted.input.skipped.size()));
  FitOptions options;
  options.environment = environment_of(what, gpu);
  options.for_unseen_families = gpu == nullptr;
  options.name = !what.name.empty() ? what.name
                 : gpu == nullptr   ? "default/pytorch"
                                    : fmt::format("{}/pytorch", gpu->name);
  // memfathom's own calibration of the architecture separates the bare context from the framework.
  Environment ours = options.environment;
  ours.framework = "memfathom";
  const std::vector<Calibration> siblings = store.architecture_siblings(ours);
  const Calibration* parent = gpu == nullptr || siblings.empty() ? nullptr : &siblings.back();
  fitted.summary = fit(fitted.input.rows, fitted.input.workspaces, options, parent);
  Calibration calibration = fitted.summary.calibration();
  calibration.created = utc_now();
  tag(calibration, gpu == nullptr ? Source::kDefault : Source::kPublished);
  calibration.provenance = what.provenance;
  fitted.saved = store.save_calibration(std::move(calibration));
  return fitted;
}

}  // namespace memfathom

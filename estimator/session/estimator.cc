#include "estimator/session/estimator.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <sstream>
#include <utility>

#include "core/collectives.h"
#include "core/error.h"
#include "core/gpus.h"
#include "estimator/parallel/strategy.h"
#include "estimator/run/stack_versions.h"
#include "estimator/session/current_stack.h"
#include "kernels/memory/allocator/allocator.h"

namespace memfathom {
namespace {

// A job that names no GPU is run for the most common architecture of this field, and for one
// without TF32, with which cuDNN's choices in fp32 differ most.
constexpr int kAssumedCapability = 80;
constexpr int kWithoutTf32 = 75;

// How many times its tensors a run may reserve before its figure says nothing about a GPU.
constexpr auto kComfortableFactors = std::to_array({1.5, 2.0, 4.0, 8.0});

constexpr const char* kCurrentCudnnTable = "9.19";
constexpr const char* kEarlierCudnnTable = "9.8";

std::optional<Bytes> capacity_of(const Job& job) {
  if (job.target.memory) return job.target.memory;
  if (!job.target.gpu.empty()) return gpu_named(job.target.gpu, "target.gpu").memory();
  return std::nullopt;
}

// The cuDNN of a published calibration's runs is unknown, and the choices of one version say little
// about those of another: neither the installed library nor any other single version is used.
bool has_unrecorded_cudnn(const Job& job, const CalibrationChoice& choice) {
  return choice.status == CalibrationStatus::kPublished &&
         choice.calibration->environment.cudnn.empty() && job.target.stack.cudnn.empty() &&
         job.allocator.backend == Backend::kCaching;
}

std::string older_gpu_sentence(const std::string& version) {
  return fmt::format(
      "the published runs on this GPU are older than Turing's release and their stack is "
      "unrecorded: a contemporary PyTorch {} is assumed (zero_grad() keeps gradients, softmax its "
      "input, cuDNN through its older API); target.stack.version says otherwise",
      version);
}

std::string published_stack_sentence(const std::string& version) {
  return fmt::format(
      "PyTorch {} of the published runs, with libraries of its time; target.stack (version, "
      "transformers, ...) names yours",
      version);
}

std::string nearest_architecture_sentence(int wanted, const OpenedWorkspaces& opened) {
  return fmt::format(
      "cuDNN's workspaces are those of sm_{}, the nearest architecture that is known for sm_{}",
      opened.compute_capability, wanted);
}

// What a job takes on a GPU with room for its cache; a cache that grows with every token would take
// any room, so it gets a share of the tensors.
Bytes comfortable_peak(const Job& job, const Totals& totals) {
  if (job.training.mode != Mode::kGenerate) return totals.device_peak;
  const Bytes outside = totals.device_peak - totals.reserved_peak;
  const auto tensors = static_cast<double>(totals.allocated_peak.count());
  const Bytes bounded{static_cast<std::int64_t>(kComfortableFactors[0] * tensors)};
  return std::min(totals.device_peak, outside + bounded);
}

// NCCL takes less without NVLink; its first communicator loads its kernels.
void set_communication(const CalibrationChoice& choice, const Job& job, DryRun& run) {
  if (run.communication.count() == 0) return;
  if (choice.calibration) {
    if (const std::optional<CommunicatorBytes> measured =
            measured_communicators(*choice.calibration, communicator_ranks(job.parallel))) {
      run.communication = Bytes{static_cast<std::int64_t>(measured->bytes)};
      constexpr double kNormal90 = 1.645;
      run.assumptions.push_back(fmt::format(
          "communicators take {} (+- {} at 90 %), as the calibration measured on its machine",
          to_string(run.communication),
          to_string(Bytes{static_cast<std::int64_t>(kNormal90 * measured->standard_error)})));
      return;
    }
  }
  const double bytes = choice.calibration ? choice.calibration->value_of(kNcclWithoutNvlink, 0) : 0;
  if (bytes <= 0) {
    run.assumptions.emplace_back(
        "NCCL uses 544 MB for a communicator of two GPUs and 688 MB for larger ones, as reported "
        "for A100s with NVLink; the real figure depends on channels and topology");
    return;
  }
  run.communication = Bytes{static_cast<std::int64_t>(bytes)};
  run.assumptions.push_back(
      fmt::format("NCCL uses {} without NVLink, as reported for such GPUs; the real figure depends "
                  "on channels and topology",
                  to_string(run.communication)));
}

// The reserved memory depends on the order and sizes of workspaces in a way that no workspace
// between two others shows: the replays are averaged, not the workspaces. `why` takes both figures.
void average(DryRun& run, const DryRun& other, fmt::format_string<std::string, std::string> why) {
  const Bytes low = std::min(run.reserved_peak, other.reserved_peak);
  const Bytes high = std::max(run.reserved_peak, other.reserved_peak);
  if (low == high) return;
  const Bytes half{(high - low).count() / 2};
  run.reserved_uncertainty += half;  // a recorded step's guesses count too
  run.reserved_peak = std::max(low + half, run.allocated_peak);
  run.assumptions.push_back(fmt::format(why, to_string(low), to_string(high)));
}

}  // namespace

Estimator::Estimator(const CalibrationSource& calibrations, const GpuInventory& gpus,
                     const WorkspaceSource& workspaces)
    : chooser_(calibrations), gpus_(gpus), workspaces_(workspaces) {}

const LiveGpu* Estimator::live_target(const Job& job) const {
  const TargetSpec& target = job.target;
  if (target.device.empty() && (target.memory || !target.gpu.empty())) return nullptr;
  const std::lock_guard lock(mutex_);
  const auto known = live_.find(target.device);
  if (known != live_.end()) return known->second ? &*known->second : nullptr;
  std::optional<LiveGpu> found =
      target.device.empty() ? gpus_.first() : std::optional(gpus_.find(target.device));
  if (found) live_.emplace(found->device, found);
  const auto at = live_.insert_or_assign(target.device, std::move(found)).first;
  return at->second ? &*at->second : nullptr;
}

bool Estimator::has_known_architecture(const Job& job) const {
  return !job.target.gpu.empty() || job.target.compute_capability > 0 ||
         live_target(job) != nullptr;
}

int Estimator::capability_of(const Job& job) const {
  int capability = job.target.compute_capability;
  if (capability > 0) return capability;
  if (!job.target.gpu.empty()) {
    capability = gpu_named(job.target.gpu, "target.gpu").compute_capability();
  } else if (const LiveGpu* live = live_target(job)) {
    capability = live->compute_capability;
  }
  return capability > 0 ? capability : kAssumedCapability;
}

CalibrationChoice Estimator::choose_calibration(const Job& job) const {
  return chooser_.choose(job, job.target.gpu.empty() ? live_target(job) : nullptr);
}

DryRun Estimator::run(const Job& job, const CalibrationChoice& choice,
                      DryRunOptions options) const {
  std::string version = job.target.stack.version;
  const bool assumes_version = version.empty() && choice.calibration;
  if (assumes_version) version = choice.calibration->environment.framework_version;
  const int capability = capability_of(job);
  // Published runs on GPUs older than Turing ran the PyTorch of their time. Whoever does not ask
  // for them gets the current one, as on every GPU.
  const std::string named = version;
  if (choice.status == CalibrationStatus::kPublished) version = torch_of(version, capability);
  const bool is_older_gpu = version != named;
  options.policy = FrameworkPolicy::for_stack(version, capability);
  Job with_versions = job;
  // The libraries of a published calibration's runs are contemporary with its PyTorch. Quantized
  // weights took no part in those runs.
  const bool from_published_runs =
      assumes_version && choice.status == CalibrationStatus::kPublished;
  apply_stack(
      with_versions, options.policy,
      from_published_runs ? BitsandbytesRelease::kCurrent : BitsandbytesRelease::kContemporary);
  const auto run_with = [&](int planned_for, const char* cudnn_table) {
    OpenedWorkspaces opened{nullptr, planned_for};
    if (job.allocator.backend != Backend::kNone) {
      opened = workspaces_.open({planned_for, uses_older_cudnn_api(version), cudnn_table});
    }
    options.workspaces = opened.model;
    DryRun run = run_dry(with_versions, options);
    if (run.asks_cudnn && opened.compute_capability != planned_for)
      run.assumptions.push_back(nearest_architecture_sentence(planned_for, opened));
    if (is_older_gpu) run.assumptions.push_back(older_gpu_sentence(version));
    if (from_published_runs && !named.empty())
      run.assumptions.push_back(published_stack_sentence(named));
    set_communication(choice, job, run);
    return run;
  };
  const bool is_unrecorded = has_unrecorded_cudnn(job, choice);
  // A mean of two replays exceeds the ceiling only if one of them exceeds twice the ceiling.
  if (options.ceiling && (is_unrecorded || !has_known_architecture(job)))
    options.ceiling = *options.ceiling * 2;
  if (is_unrecorded) {
    DryRun current = run_with(capability, kCurrentCudnnTable);
    if (!current.asks_cudnn) return current;
    options.timeline = nullptr;
    options.history = nullptr;
    average(current, run_with(capability, kEarlierCudnnTable),
            "the cuDNN of the published runs is not recorded: the reserved memory is the mean of "
            "{} and {}, to which the workspaces of cuDNN 9.8 and 9.19 lead");
    return current;
  }
  DryRun run = run_with(capability, "");
  if (!run.asks_cudnn || options.workspaces == nullptr || has_known_architecture(job)) return run;
  options.timeline = nullptr;
  options.history = nullptr;
  average(run, run_with(kWithoutTf32, ""),
          "no GPU is named: the reserved memory is the mean of {} and {}, to which cuDNN's "
          "workspaces lead on GPUs without TF32 and with it; target.gpu names yours");
  return run;
}

DryRun Estimator::run_unlimited(const Job& job, const CalibrationChoice& choice,
                                std::optional<Bytes> ceiling) const {
  DryRunOptions options;
  options.ceiling = ceiling;
  try {
    return run(job, choice, options);
  } catch (const OutOfMemory& full) {
    if (ceiling) throw;
    throw Error(ErrorKind::kInput,
                fmt::format("the job takes more memory than anything can address ({} when it was "
                            "given up); check its batch, sequence, image and layer sizes",
                            to_string(full.reserved())));
  }
}

DryRun Estimator::run_with_bounded_cache(const Job& job, const CalibrationChoice& choice,
                                         const DryRun& unlimited) const {
  for (const double factor : kComfortableFactors) {
    const Bytes limit{
        static_cast<std::int64_t>(factor * static_cast<double>(unlimited.allocated_peak.count()))};
    if (unlimited.reserved_peak <= limit) break;
    try {
      DryRunOptions options;
      options.device_memory = limit;
      DryRun bounded = this->run(job, choice, options);
      bounded.assumptions.push_back(
          fmt::format("the allocator has {} for a cache that grows with every token and gives "
                      "freed blocks back {} times; without a limit it would keep {}",
                      to_string(limit), bounded.retries, to_string(unlimited.reserved_peak)));
      return bounded;
    } catch (const OutOfMemory&) {
      // Fragments need more room.
    }
  }
  return unlimited;
}

DryRun Estimator::run_comfortably(const Job& job, const CalibrationChoice& choice,
                                  std::optional<Bytes> ceiling) const {
  if (job.training.mode != Mode::kGenerate) return run_unlimited(job, choice, ceiling);
  if (ceiling) {
    DryRunOptions options;
    options.device_memory = ceiling;
    DryRun below = run(job, choice, options);
    if (below.retries == 0) return below;
  }
  DryRun unlimited = run_unlimited(job, choice, std::nullopt);
  const std::optional<Bytes> capacity = capacity_of(job);
  if (capacity && unlimited.reserved_peak <= *capacity) return unlimited;
  return run_with_bounded_cache(job, choice, unlimited);
}

DryRun Estimator::dry_run(const Job& job) const { return run(job, choose_calibration(job)); }

Timeline Estimator::timeline(const Job& given) const {
  const LiveGpu* live = live_target(given);
  const Job job = live != nullptr ? with_live_gpu(*live, given) : given;
  Timeline timeline;
  DryRunOptions options;
  options.timeline = &timeline;
  run(job, choose_calibration(job), options);
  return timeline;
}

Trace Estimator::history(const Job& given) const {
  if (const Trace* recorded = given.model.trace(); recorded != nullptr) return *recorded;
  if (given.parallel.pipeline > 1) {
    throw Error(ErrorKind::kUsage,
                fmt::format("parallel.pipeline is {}: every stage has a history of its own; write "
                            "the job of one stage, without a pipeline",
                            given.parallel.pipeline));
  }
  const LiveGpu* live = live_target(given);
  const Job job = live != nullptr ? with_live_gpu(*live, given) : given;
  std::stringstream lines;
  TraceWriter writer(lines, false, R"({"from":"replay"})");
  DryRunOptions options;
  options.history = &writer;
  run(job, choose_calibration(job), options);
  writer.finish();
  return read_trace(lines, "the job's replay");
}

Estimate Estimator::estimate(const Job& job, bool explains) const {
  return answer(job, AnswerOptions{explains, false, {}, nullptr});
}

Estimate Estimator::estimate_as_run(const Job& job, bool explains) const {
  return answer(job, AnswerOptions{explains, true, {}, nullptr});
}

Estimate Estimator::estimate_for_study(const Job& job, const IntervalStudy& study) const {
  return answer(job, AnswerOptions{false, true, {}, &study});
}

EstimateFunction Estimator::search_function() const {
  return [this](const Job& job, std::optional<Bytes> ceiling) {
    return answer(job, AnswerOptions{false, false, ceiling, nullptr});
  };
}

std::optional<Estimate> Estimator::estimate_in_full_gpu(const Job& job,
                                                        const CalibrationChoice& choice,
                                                        const Estimate& unlimited,
                                                        EstimateContext context) const {
  DryRunOptions options;
  options.device_memory = memory_for_cache(job, unlimited, context);
  if (!options.device_memory) return std::nullopt;
  try {
    const DryRun squeezed = run(job, choice, options);
    context.wanted = comfortable_peak(job, unlimited.totals);
    Estimate estimate = make_estimate(job, squeezed, context);
    estimate.assumptions.push_back(
        fmt::format("the GPU is full: the allocator gives its cache back ({} times in the "
                    "replay) and goes on, which is slow; on a larger GPU the job takes {}",
                    squeezed.retries, to_string(context.wanted)));
    return estimate;
  } catch (const OutOfMemory&) {
    return std::nullopt;  // it fails even so
  }
}

Estimate Estimator::answer(const Job& given, const AnswerOptions& question) const {
  const LiveGpu* live = live_target(given);
  const Job job = live != nullptr ? with_live_gpu(*live, given) : given;
  CalibrationChoice choice = choose_calibration(job);
  if (choice.status == CalibrationStatus::kCalibrated)
    choice.stale = stale_reason(choice.calibration->environment, job, live);
  if (!choice.stale.empty()) choice.status = CalibrationStatus::kStale;
  EstimateContext context;
  context.calibration = choice.calibration ? &*choice.calibration : nullptr;
  context.status = choice.status;
  context.capacity = capacity_of(job);
  context.explains = question.explains;
  context.study = question.study;
  // A job that is run as it is has the memory of its target as the limit of its cache.
  const bool limited_by_gpu = question.as_run && context.capacity;
  const DryRun comfortable = limited_by_gpu ? run_unlimited(job, choice, question.ceiling)
                                            : run_comfortably(job, choice, question.ceiling);
  Estimate estimate = make_estimate(job, comfortable, context);
  std::optional<Estimate> squeezed;
  if (limited_by_gpu) squeezed = estimate_in_full_gpu(job, choice, estimate, context);
  if (squeezed) {
    estimate = std::move(*squeezed);
  } else if (limited_by_gpu && job.training.mode == Mode::kGenerate &&
             comfortable.reserved_peak > *context.capacity) {
    estimate = make_estimate(job, run_with_bounded_cache(job, choice, comfortable), context);
  }
  if (live != nullptr) estimate.assumptions.push_back(live->sentence());
  if (std::string sentence = ambiguous_gpu_sentence(job.target.gpu); !sentence.empty())
    estimate.assumptions.push_back(std::move(sentence));
  if (!choice.stale.empty()) {
    estimate.warnings.push_back(
        fmt::format("the calibration {} is stale: {}; `memfathom calibrate` renews it",
                    choice.calibration->name, choice.stale));
  }
  if (!job.target.gpu.empty() && gpu_named(job.target.gpu, "target.gpu").vendor == "amd") {
    estimate.warnings.emplace_back(
        "AMD GPUs are known here as capacities only: kernels, workspaces and context are those of "
        "an NVIDIA GPU, and nothing is calibrated");
  }
  return estimate;
}

bool is_undecided(const Estimate& estimate) {
  return estimate.verdict.status == VerdictStatus::kTight ||
         estimate.verdict.status == VerdictStatus::kUndecided ||
         estimate.calibration.status == CalibrationStatus::kNone;
}

Job with_live_gpu(const LiveGpu& gpu, Job job) {
  TargetSpec& target = job.target;
  target.device = gpu.device;
  if (target.gpu.empty()) target.gpu = gpu.gpu;
  if (!target.memory) target.memory = gpu.total;
  if (target.used_by_others.count() == 0) target.used_by_others = gpu.used;
  return job;
}

}  // namespace memfathom

#include "estimator/answer/estimate.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <vector>

#include "core/coefficients.h"
#include "core/interval.h"
#include "core/predictor.h"
#include "estimator/answer/default_spread.h"
#include "estimator/answer/explain.h"
#include "estimator/run/replayed_job.h"

namespace memfathom {
namespace {

void add_line(std::vector<ComponentLine>& lines, ComponentLine line) {
  if (line.bytes.count() != 0) lines.push_back(std::move(line));
}

Source source_of(Component component) {
  switch (component) {
    case Component::kWorkspaceCublas: return Source::kDefault;  // documented sizes
    case Component::kWorkspaceCudnn:
    case Component::kWorkspaceCufft: return Source::kFitted;
    case Component::kParameters:
    case Component::kBuffers:
    case Component::kGradients:
    case Component::kOptimizerState:
    case Component::kActivations:
    case Component::kTemporaries:
    case Component::kLogitsLoss:
    case Component::kInputs:
    case Component::kKvCache:
    case Component::kAdapterParameters:
    case Component::kCommunication:
    case Component::kAllocatorSlack:
    case Component::kContext:
    case Component::kFramework:
    case Component::kUnaccounted: break;
  }
  return Source::kExact;
}

// The lines of what is alive at the allocated peak.
std::vector<ComponentLine> allocated_lines(const DryRun& run) {
  std::vector<ComponentLine> lines;
  for (std::size_t m = 0; m < run.at_peak.size(); ++m) {
    for (std::size_t c = 0; c < kComponentCount; ++c) {
      const auto component = static_cast<Component>(c);
      add_line(lines,
               {component, run.modules[m], Bytes{run.at_peak[m][c]}, source_of(component), ""});
    }
  }
  return lines;
}

Source constant_source(const Calibration* calibration, std::string_view name) {
  if (calibration == nullptr) return Source::kDefault;
  for (const Coefficient& coefficient : calibration->coefficients) {
    if (coefficient.name != name) continue;
    if (coefficient.prior_only) return Source::kDefault;
    return calibration->source == Source::kPublished ? Source::kPublished : coefficient.source;
  }
  return Source::kDefault;
}

// Whole bytes, so that the lines of an answer add up to its total.
using ConstantBytes = std::array<std::int64_t, kConstantCount>;

// What the job pays for each constant; nothing under an allocator that we only trace.
ConstantBytes constant_bytes(const Job& job, const Calibration* calibration) {
  ConstantBytes bytes{};
  if (job.allocator.backend != Backend::kCaching) return bytes;
  const Constants constants =
      calibration != nullptr ? constants_of(*calibration) : default_constants("pytorch");
  std::transform(constants.begin(), constants.end(), bytes.begin(),
                 [](double constant) { return static_cast<std::int64_t>(constant); });
  return bytes;
}

// One line per constant that the job pays for, in the order of the components.
std::vector<ComponentLine> constant_lines(const ReplayedJob& job, const ConstantBytes& bytes,
                                          const Calibration* calibration) {
  std::vector<ComponentLine> lines;
  for (std::size_t i = 0; i < kConstantCount; ++i) {
    const LibraryConstant& constant = kLibraryConstants[i];
    if (!applies_to(constant.condition, job)) continue;
    add_line(lines, {constant.component, "", Bytes{bytes[i]},
                     constant_source(calibration, constant.name), std::string(constant.name)});
  }
  std::stable_sort(lines.begin(), lines.end(), [](const ComponentLine& a, const ComponentLine& b) {
    return a.component < b.component;
  });
  return lines;
}

// What the driver keeps of the memory that nvidia-smi calls total; no process can have it. The
// totals that CUDA reports with drivers from 535 on lie near this line: 14.58 GiB of a T4's 15,
// 22.06 of an A10G's 22.49, 23.6 of an RTX 3090's 24, 39.4 of an A100's 40, 79.2 of 80.
Bytes driver_reserved_bytes(Bytes capacity) {
  constexpr std::int64_t kDriverBaseBytes = std::int64_t{320} << 20;
  return Bytes{kDriverBaseBytes + capacity.count() / 200};
}

// What no process can have. What is in use on a GPU of this machine is read with it.
Bytes memory_unavailable(const Job& job, Bytes capacity) {
  return job.target.device.empty() ? std::min(driver_reserved_bytes(capacity), capacity) : Bytes{};
}

// What the job may take of the GPU; absent without a target.
std::optional<Bytes> available_to(const Job& job, const EstimateContext& context) {
  if (!context.capacity) return std::nullopt;
  const double fraction =
      static_cast<double>(context.capacity->count()) * job.target.margin_fraction;
  const Bytes wanted = job.target.margin_bytes.value_or(Bytes{static_cast<std::int64_t>(fraction)});
  return *context.capacity - job.target.used_by_others -
         std::max(wanted, memory_unavailable(job, *context.capacity));
}

// Where lengths vary, the best guess is what a replay of random ones comes to hold. The GPU bounds
// it: before the allocator fails it gives its cache back.
Bytes expected_reserved(const DryRun& run, Bytes outside, const std::optional<Bytes>& available) {
  if (run.reserved_high <= run.reserved_peak) return run.reserved_peak;
  if (!available) return run.reserved_high;
  return std::max(run.reserved_peak, std::min(run.reserved_high, *available - outside));
}

// How far what varying lengths reserve may lie from one replay of them: it depends on the order of
// the lengths, which nobody knows. Nine in ten published runs lie within a quarter.
constexpr int kShareOfVaryingLengths = 4;

void widen_for_lengths(const DryRun& run, Estimate& estimate) {
  if (run.reserved_high <= run.reserved_peak) return;
  Totals& totals = estimate.totals;
  const Bytes share{totals.reserved_peak.count() / kShareOfVaryingLengths};
  const Bytes fixed = totals.device_peak - (totals.reserved_peak - run.reserved_peak);
  totals.device_low = std::max(fixed, totals.device_peak - share);
  totals.device_high = std::max(totals.device_high, totals.device_peak + share);
  estimate.uncertainty.push_back({"lengths", totals.device_peak - totals.device_low, share,
                                  "the order of varying lengths decides what is reserved"});
}

// The operations of perceptrons, for whose runs the group "dense" stands.
bool is_dense(const Node& layers) {
  static constexpr auto kDenseTypes = std::to_array<std::string_view>(
      {"linear",   "relu",       "relu6",      "gelu",    "gelu_new",   "gelu_pytorch_tanh",
       "silu",     "mish",       "tanh",       "sigmoid", "leaky_relu", "elu",
       "softplus", "selu",       "hardswish",  "prelu",   "softmax",    "log_softmax",
       "dropout",  "batch_norm", "layer_norm", "flatten", "repeat",     "residual",
       "concat",   "checkpoint"});
  const std::vector<Node>& items = layers.items();
  return std::all_of(items.begin(), items.end(), [](const Node& layer) {
    if (layer.is_list()) return is_dense(layer);  // a branch of concat
    const Node* type = layer.find("type");
    if (type == nullptr ||
        std::find(kDenseTypes.begin(), kDenseTypes.end(), type->as_string()) == kDenseTypes.end())
      return false;
    constexpr std::array kInner{"layers", "shortcut", "branches"};
    return std::all_of(kInner.begin(), kInner.end(), [&](const char* key) {
      const Node* inner = layer.find(key);
      return inner == nullptr || is_dense(*inner);
    });
  });
}

void set_interval(const Job& job, const PredictionInterval& interval, Totals& totals) {
  totals.device_low = totals.device_high = totals.device_peak;
  if (job.allocator.backend != Backend::kCaching) return;
  totals.device_low = std::min(interval.low, totals.device_peak);
  totals.device_high = std::max(interval.high, totals.device_peak);
  totals.interval = interval.level;
}

// `spread`: null where the calibration's ratios speak for the job.
Verdict judge(const Job& job, const EstimateContext& context, const std::string& group,
              const DefaultSpread* spread, const Totals& totals) {
  Verdict verdict;
  if (!context.capacity) return verdict;
  verdict.gpu = job.target.gpu.empty() ? job.target.device : job.target.gpu;
  verdict.capacity = context.capacity;
  const Bytes available = *available_to(job, context);
  verdict.used_by_others = job.target.used_by_others;
  verdict.available = available;
  verdict.headroom = available - totals.device_peak;
  // Bare tensors have no interval, and nothing outside them is counted.
  if (context.calibration != nullptr && job.allocator.backend == Backend::kCaching) {
    verdict.probability_fits = spread != nullptr ? spread->probability_fits(available)
                                                 : probability_fits(*context.calibration, group,
                                                                    totals.device_peak, available);
  }
  if (totals.device_peak > available) {
    verdict.status = VerdictStatus::kDoesNotFit;
  } else {
    verdict.status = totals.device_high <= available ? VerdictStatus::kFits : VerdictStatus::kTight;
  }
  return verdict;
}

// A person wants each phase once: the highest of the steady iterations, and the first one's beside
// it.
std::vector<PhaseLine> phase_lines(const DryRun& run) {
  std::vector<PhaseLine> lines;
  for (const PhaseRecord& phase : run.phases) {
    const int iteration = std::min(phase.iteration, 2);
    auto line = std::find_if(lines.begin(), lines.end(), [&](const PhaseLine& known) {
      return known.name == phase.name && known.iteration == iteration;
    });
    if (line == lines.end()) line = lines.insert(lines.end(), {phase.name, iteration, {}, {}, {}});
    line->reserved = std::max(line->reserved, Bytes{phase.reserved_peak});
    if (Bytes{phase.allocated_peak} < line->allocated_peak) continue;
    line->allocated_peak = Bytes{phase.allocated_peak};
    line->live_at_peak = {};
    for (const ComponentBytes& module : phase.live_at_peak) {
      for (std::size_t c = 0; c < kComponentCount; ++c) line->live_at_peak[c] += module[c];
    }
  }
  // Who asks for a phase by its name means the steady one.
  std::stable_partition(lines.begin(), lines.end(),
                        [](const PhaseLine& line) { return line.iteration != 1; });
  return lines;
}

}  // namespace

std::string job_group(const Job& job, const DryRun& run) {
  if (job.training.mode == Mode::kGenerate) return std::string(kGenerationGroup);
  if (job.training.mode == Mode::kInference)
    return (run.asks_cudnn ? "convolution " : "") + std::string(kInferenceGroup);
  if (run.uses_cufft) return "fourier";
  if (run.asks_cudnn) return "convolution";
  const LayerStack* stack = job.model.layers();
  return stack != nullptr && is_dense(stack->model.at("layers")) ? "dense" : "transformer";
}

std::optional<Bytes> memory_for_cache(const Job& job, const Estimate& estimate,
                                      const EstimateContext& context) {
  if (!context.capacity || job.allocator.backend != Backend::kCaching) return std::nullopt;
  const Totals& totals = estimate.totals;
  const Bytes outside = totals.device_peak - totals.reserved_peak;
  const Bytes room = *context.capacity - job.target.used_by_others -
                     memory_unavailable(job, *context.capacity) - outside;
  const bool is_squeezed = totals.reserved_peak > room && totals.allocated_peak <= room;
  return is_squeezed ? std::optional(room) : std::nullopt;
}

void bound_by_gpu(Estimate& estimate) {
  Totals& totals = estimate.totals;
  const Verdict& verdict = estimate.verdict;
  totals.device_high_on_gpu.reset();
  if (!verdict.capacity) return;
  const Bytes room = *verdict.capacity - verdict.used_by_others;
  if (totals.device_peak <= room && totals.device_high > room) totals.device_high_on_gpu = room;
}

Estimate make_estimate(const Job& job, const DryRun& run, const EstimateContext& context) {
  Estimate estimate;
  estimate.id = job.id;
  estimate.parameter_count = run.parameter_count;
  estimate.trainable_count = run.trainable_count;
  estimate.layers = run.layers;
  estimate.assumptions = run.assumptions;
  estimate.not_modelled = run.not_modelled;
  estimate.warnings = run.warnings;

  Totals& totals = estimate.totals;
  totals.allocated_peak = run.allocated_peak;
  totals.first_allocated_peak = run.first_allocated_peak;
  totals.interval = context.interval;
  if (run.host_peak.count() > 0) totals.host_peak = run.host_peak;
  totals.rank = run.rank;
  totals.ranks_per_node = std::min(job.parallel.num_gpus, job.parallel.gpus_per_node);

  estimate.components = allocated_lines(run);
  ReplayedJob replay = replayed(run);
  const ConstantBytes constants = constant_bytes(job, context.calibration);
  const Bytes outside =
      Bytes{add_constants(replay, constants.data(), std::int64_t{0})} + run.communication;
  replay.reserved_peak = expected_reserved(run, outside, available_to(job, context));
  totals.reserved_peak = replay.reserved_peak;
  totals.device_peak = Bytes{predict_device(replay, constants.data())} + run.communication;
  add_line(estimate.components, {Component::kAllocatorSlack, "",
                                 totals.reserved_peak - run.allocated_peak, Source::kExact, ""});
  for (ComponentLine& line : constant_lines(replay, constants, context.calibration))
    estimate.components.push_back(std::move(line));
  add_line(estimate.components,
           {Component::kCommunication, "", run.communication, Source::kDefault, ""});

  const std::string group = job_group(job, run);
  const IntervalStudy study = context.study != nullptr ? *context.study : IntervalStudy();
  const ReplayShares shares = study.shares.value_or(kPublishedShares);
  const DefaultSpread spread(run, context.calibration, totals.device_peak, shares);
  const bool measured = context.calibration != nullptr && !study.ignores_ratios &&
                        ratios_apply_to(*context.calibration, job, group);
  const PredictionInterval interval =
      measured
          ? prediction_interval(*context.calibration, group, totals.device_peak, context.interval)
          : spread.interval(context.interval);
  set_interval(job, interval, totals);
  if (measured) {
    estimate.uncertainty.push_back({"calibration", totals.device_peak - totals.device_low,
                                    totals.device_high - totals.device_peak,
                                    "measured runs of this kind on this GPU and stack"});
  } else if (job.allocator.backend == Backend::kCaching) {
    estimate.uncertainty = spread.parts();
    if (run.lengths_unspecified) {
      const DefaultSpread equal(run, context.calibration, totals.device_peak, shares, false);
      totals.device_high_equal_lengths =
          std::max(totals.device_peak, equal.interval(context.interval).high);
    }
  }
  widen_for_lengths(run, estimate);
  totals.device_high = std::max(totals.device_high, context.wanted);
  if (totals.device_high_equal_lengths)
    *totals.device_high_equal_lengths = std::max(*totals.device_high_equal_lengths, context.wanted);
  if (context.wanted > totals.device_peak) totals.comfortable_peak = context.wanted;
  if (study.measured) {
    estimate.probability_of_measured =
        measured
            ? probability_fits(*context.calibration, group, totals.device_peak, *study.measured)
            : spread.probability_fits(*study.measured);
  }
  estimate.phases = phase_lines(run);
  estimate.verdict = judge(job, context, group, measured ? nullptr : &spread, totals);
  bound_by_gpu(estimate);

  CalibrationNote& note = estimate.calibration;
  note.status = context.status;
  if (context.calibration != nullptr) {
    note.id = context.calibration->id;
    note.name = context.calibration->name;
    note.created = context.calibration->created;
    note.environment = context.calibration->environment;
    note.samples = context.calibration->samples;
    note.held_out_median_error = context.calibration->quality.held_out_median_error;
  }
  if (context.explains) estimate.explanations = explain(job, run, estimate, context.calibration);
  return estimate;
}

const char* to_string(CalibrationStatus status) {
  switch (status) {
    case CalibrationStatus::kCalibrated: return "calibrated";
    case CalibrationStatus::kStale: return "stale";
    case CalibrationStatus::kPublished: return "published";
    case CalibrationStatus::kNone: return "none";
  }
  return "none";
}

const char* to_string(VerdictStatus status) {
  switch (status) {
    case VerdictStatus::kFits: return "fits";
    case VerdictStatus::kTight: return "tight";
    case VerdictStatus::kDoesNotFit: return "does_not_fit";
    case VerdictStatus::kUnknown: return "unknown";
    case VerdictStatus::kUndecided: return "undecided";
  }
  return "unknown";
}

}  // namespace memfathom

#include "estimator/run/dry_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>

#include "core/error.h"
#include "estimator/job_model/built_model.h"
#include "estimator/job_model/layer_benchmark.h"
#include "estimator/parallel/model_parallel.h"
#include "estimator/parallel/strategy.h"
#include "estimator/run/iterations.h"
#include "estimator/run/load_phase.h"
#include "estimator/run/simulated_memory.h"
#include "estimator/run/trace_run.h"
#include "estimator/run/varying_lengths.h"
#include "kernels/devices/dry/dry_device.h"
#include "kernels/framework/layers/training_loop.h"
#include "kernels/framework/tensor/run_tracer.h"
#include "kernels/framework/tensor/segment_replay.h"
#include "kernels/memory/allocator/bare_allocator.h"

namespace memfathom {
namespace {

LoopOptions loop_options(const Job& job, const BuildOverrides& plan) {
  const TrainingSpec& training = job.training;
  LoopOptions options;
  options.optimizer = training.optimizer_options();
  options.batch_size = training.batch_size;
  options.accumulation_steps =
      std::min<std::int64_t>(training.accumulation_steps, 2);  // the second is like all others
  if (!plan.compute) options.autocast = autocast_of(training);
  options.grad_scaler = training.grad_scaler;
  options.gradient_clipping = training.gradient_clipping;
  options.hold_output = training.hold_output;
  options.retain_graph = retains_graph(job);
  options.zero_grad = training.zero_grad.value_or(options.zero_grad);
  options.mimic_user_script = job.allocator.backend == Backend::kCaching;
  if (training.settings.stage == PipelineStage::kFirst) {
    options.micro_batches_in_flight = micro_batches_in_flight(job);
    options.accumulation_steps = 1;
  }
  return options;
}

void note_stride(const TrainingSpec& training, std::vector<std::string>& assumptions) {
  const std::int64_t tokens = training.settings.new_tokens;
  const std::int64_t stride = decoding_stride(tokens);
  if (stride <= 1 || training.settings.kv_cache == KvCache::kStatic) return;
  assumptions.push_back(
      fmt::format("{} new tokens: the cache is grown by {} tokens at a time, so what the allocator "
                  "reserves beyond the tensors is approximate; the tensors at the peak are exact",
                  tokens, stride));
}

// What is offloaded: tensors in a session of their own, each counting its bytes.
class HostMemory {
 public:
  Session& session() { return session_; }
  Bytes peak() const { return Bytes{allocator_.statistics().allocated_bytes.all.peak}; }

 private:
  DryDevice device_;
  BareAllocator allocator_;
  Session session_{device_, allocator_, device_.workspaces(), FrameworkPolicy{}};
};

// `vary`: every iteration has another length, where the usual ones all have the longest.
DryRun run_session(Session& session, const Job& job, const StepHook& reached, bool vary) {
  DryRun run;
  session.cudnn_benchmark = job.training.cudnn_benchmark;
  HostMemory host;
  const std::unique_ptr<Strategy> strategy = make_strategy(session, host.session(), job);
  if (session.computes() && (strategy || job.parallel.offload_activations)) {
    throw Error(ErrorKind::kInput,
                "parallel: several GPUs and offloading are estimated, not measured here; measure "
                "the job without them");
  }
  const Scoped<Session*> offload_session(
      session.offload_session, job.parallel.offload_activations ? &host.session() : nullptr);
  const BuildOverrides plan = build_overrides(job);
  const BuiltModel model = build_model(session, job, plan, run.assumptions);
  run.parameter_count = model.parameter_count();
  run.layers = model.layer_count();
  std::vector<Tensor> trainable = model.trainable();
  if (job.training.mode == Mode::kTrain) {
    for (const Tensor& parameter : trainable) run.trainable_count += parameter.elements();
    if (job.training.lora && trainable.empty()) {
      throw Error(ErrorKind::kInput,
                  "training.lora.targets names no linear layer of this model, so nothing would be "
                  "trainable; \"all-linear\" selects every linear layer except the head");
    }
  }
  LoopOptions options = loop_options(job, plan);
  if (strategy) {
    trainable = strategy->adopt(model.parameters());
    strategy->adjust(options.optimizer);
    options.observer = strategy.get();
  }
  load_shard(session, job, model);
  note_assumptions(job, run.assumptions, run.not_modelled);
  note_benchmark(job, run.assumptions);
  run.communication = communicator_bytes(job.parallel);
  reached("tensors");

  switch (job.training.mode) {
    case Mode::kTrain: {
      TrainingLoop loop(session, *model.network, std::move(trainable), options);
      if (vary) {
        vary_lengths(loop, *model.network, job.training.settings.sequence_length);
      } else {
        train(loop, job.training, reached);
        run.lengths_unspecified = note_lengths(job, *model.network, run.assumptions);
      }
      break;
    }
    case Mode::kInference: infer(session, *model.network, job.training, reached); break;
    case Mode::kGenerate:
      generate(session, *model.network, job.training, reached);
      note_stride(job.training, run.assumptions);
      break;
  }
  note_peaks(session.ledger(), session.allocator().statistics(), run);
  run.uses_cublas = session.used_cublas();
  run.uses_cudnn = session.used_cudnn();
  run.asks_cudnn = session.asked_cudnn();
  run.uses_cufft = session.used_cufft();
  run.host_peak = host.peak();
  return run;
}

DryRun run_layers(const Job& job, const DryRunOptions& options, bool vary) {
  DryDevice device;
  SimulatedMemory memory(job, options);
  const WorkspaceModel& workspaces =
      options.workspaces != nullptr ? *options.workspaces : device.workspaces();
  Timeline unused;
  const bool watches = options.timeline != nullptr && !vary;
  if (watches) *options.timeline = {};
  WatchedAllocator watched(memory.allocator(), watches ? *options.timeline : unused);
  Allocator& counted = watches ? static_cast<Allocator&>(watched) : memory.allocator();
  std::optional<RunTracer> tracer;
  if (options.history != nullptr && !vary) tracer.emplace(counted, *options.history);
  Session session(device, tracer ? *tracer : counted, workspaces, memory.policy());
  if (watches) watched.watch(session.ledger());
  if (tracer) tracer->follow(session);
  return run_session(
      session, job, [](std::string_view) {}, vary);
}

// Blocks alike are played where that is exact. With a graph that stays, or somebody watching, every
// block runs.
DryRun run_once_dry(const Job& job, const DryRunOptions& options, bool vary) {
  if (options.timeline == nullptr && options.history == nullptr && !retains_graph(job)) {
    try {
      const ReplayScope replays(options.replays_blocks);
      return run_layers(job, options, vary);
    } catch (const SegmentsDiffer&) {
    }
  }
  const ReplayScope replays(false);
  return run_layers(job, options, vary);
}

DryRun run_on_dry_device(const Job& job, const DryRunOptions& options) {
  DryRun run = run_once_dry(job, options, false);
  const TrainingSpec& training = job.training;
  if (training.lengths == Lengths::kVarying && training.mode == Mode::kTrain &&
      job.allocator.backend == Backend::kCaching) {
    // What it comes to hold is bounded by the GPU afterwards, so it may go beyond a ceiling.
    DryRunOptions unbounded = options;
    unbounded.ceiling.reset();
    run.reserved_high =
        std::max(run.reserved_peak, run_once_dry(job, unbounded, true).reserved_peak);
  }
  return run;
}

}  // namespace

DryRun run_in(Session& session, const Job& job, const StepHook& reached) {
  return run_session(session, job, reached, false);
}

DryRun run_dry(const Job& job, const DryRunOptions& options) {
  if (job.model.trace() != nullptr) return run_trace(job, options);
  if (job.parallel.tensor == 1 && job.parallel.pipeline == 1)
    return run_on_dry_device(job, options);
  std::vector<std::string> assumptions;
  Job part = job_of_one_gpu(job, assumptions);
  DryRun run;
  if (job.parallel.pipeline == 1) {
    run = run_on_dry_device(part, options);
  } else {
    // Stages between the two have what the first has, without its embedding. The one that is not
    // shown may go beyond the ceiling.
    DryRunOptions again = options;
    again.ceiling.reset();
    part.training.settings.stage = PipelineStage::kFirst;
    run = run_on_dry_device(part, again);
    part.training.settings.stage = PipelineStage::kLast;
    Timeline of_last;
    if (options.timeline != nullptr) again.timeline = &of_last;
    DryRun last = run_on_dry_device(part, again);
    const bool first_is_heavier = run.allocated_peak >= last.allocated_peak;
    if (!first_is_heavier) {
      run = std::move(last);
      if (options.timeline != nullptr) *options.timeline = std::move(of_last);
    }
    run.rank = fmt::format("pipeline stage {} of {}", first_is_heavier ? 1 : job.parallel.pipeline,
                           job.parallel.pipeline);
    assumptions.push_back(fmt::format(
        "pipeline of {} stages (1F1B): the {} stage is the heaviest and is shown; the first holds "
        "{} micro-batches at once, the last one",
        job.parallel.pipeline, first_is_heavier ? "first" : "last", micro_batches_in_flight(job)));
  }
  run.assumptions.insert(run.assumptions.begin(), assumptions.begin(), assumptions.end());
  run.parameter_count = count_parameters(job);
  return run;
}

}  // namespace memfathom

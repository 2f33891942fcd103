#include "estimator/run/dry_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>

#include "core/error.h"
#include "estimator/parallel/model_parallel.h"
#include "estimator/parallel/strategy.h"
#include "estimator/run/built_model.h"
#include "estimator/run/layer_benchmark.h"
#include "estimator/run/load_phase.h"
#include "estimator/run/trace_run.h"
#include "estimator/run/varying_lengths.h"
#include "kernels/allocator/arithmetic_segments.h"
#include "kernels/allocator/bare_allocator.h"
#include "kernels/allocator/caching_allocator.h"
#include "kernels/dry/dry_device.h"
#include "kernels/layers/training_loop.h"

namespace memfathom {
namespace {

LoopOptions loop_options(const Job& job, const BuildPlan& plan) {
  const TrainingSpec& training = job.training;
  LoopOptions options;
  options.optimizer = training.optimizer;
  options.batch_size = training.batch_size;
  options.accumulation_steps =
      std::min<std::int64_t>(training.accumulation_steps, 2);  // the second is like all others
  if (!plan.compute) options.autocast = autocast_of(training);
  options.grad_scaler = training.grad_scaler;
  options.gradient_clipping = training.gradient_clipping;
  options.hold_output = training.hold_output;
  options.retain_graph = retains_graph(job);
  options.zero_grad = training.zero_grad;
  options.as_scripts_do = job.allocator.backend == Backend::kCaching;
  if (training.settings.stage == PipelineStage::kFirst) {
    options.passes_in_flight = passes_in_flight(job);
    options.accumulation_steps = 1;
  }
  return options;
}

// The iterations that matter: two full ones; where an epoch ends with a shorter batch, that one and
// the full ones after it, until the pattern repeats.
void train(TrainingLoop& loop, const TrainingSpec& training, const StepHook& reached) {
  const auto iterate = [&](std::optional<std::int64_t> size = {}) {
    loop.iterate(size);
    reached("step");
  };
  const std::int64_t batch = training.batch_size;
  if (training.warmup_forward) loop.warm_up();
  const std::int64_t samples = training.samples_per_epoch.value_or(0);
  const std::int64_t rest = samples > 0 && !training.drop_last ? samples % batch : 0;
  // Evaluation comes between iterations: what it leaves in the allocator meets the next one.
  const auto evaluate = [&] {
    if (training.evaluation_batch == 0) return;
    loop.evaluate(training.evaluation_batch);
    iterate();
  };
  if (samples == 0 || rest == 0) {
    for (int i = 0; i < 3; ++i) iterate();
    evaluate();
    return;
  }
  const std::int64_t full = std::min<std::int64_t>(samples / batch, 3);
  for (int epoch = 0; epoch < 3; ++epoch) {
    for (std::int64_t i = 0; i < full; ++i) iterate();
    iterate(rest);
  }
  evaluate();
}

void infer(Session& session, Network& network, const TrainingSpec& training,
           const StepHook& reached) {
  const NoGrad no_grad(session);
  session.training = false;
  network.load_batch(training.batch_size, false);
  for (int iteration = 1; iteration <= 2; ++iteration) {
    session.ledger().begin_phase("forward", iteration);
    const AutocastScope autocast(session, training.precision.autocast);
    const Tensor output = network.forward();
    network.end_generation();  // a cache that the forward built dies with its output
    reached("step");
  }
}

void generate(Session& session, Network& network, const TrainingSpec& training,
              const StepHook& reached) {
  const NoGrad no_grad(session);
  session.training = false;
  network.load_batch(training.batch_size, false);
  const std::int64_t tokens = std::max<std::int64_t>(training.settings.new_tokens, 1);
  for (int iteration = 1; iteration <= 2; ++iteration) {
    session.ledger().begin_phase("prefill", iteration);
    const AutocastScope autocast(session, training.precision.autocast);
    Tensor logits = network.prefill();
    session.ledger().begin_phase("decode", iteration);
    for (std::int64_t i = 1; i < tokens; ++i) logits = network.decode();
    logits.reset();
    network.end_generation();
    reached("step");
  }
}

// What is offloaded: tensors in a session of their own, each counting its bytes.
class HostMemory {
 public:
  Session& session() { return session_; }
  Bytes peak() const { return Bytes{allocator_.statistics().allocated_bytes.all.peak}; }

 private:
  DryDevice device_;
  BareAllocator allocator_;
  Session session_{device_, allocator_, device_, FrameworkPolicy{}};
};

void summarize(Session& session, DryRun& run) {
  Ledger& ledger = session.ledger();
  ledger.begin_phase("end", 0);
  run.phases.assign(ledger.phases().begin(), ledger.phases().end() - 1);
  run.modules = ledger.module_names();
  const int last =
      std::max_element(run.phases.begin(), run.phases.end(), [](const auto& a, const auto& b) {
        return a.iteration < b.iteration;
      })->iteration;
  const int steady = std::min(last, 2);
  std::int64_t peak = -1;
  for (const PhaseRecord& phase : run.phases) {
    if (phase.iteration == 1)
      run.first_allocated_peak = std::max(run.first_allocated_peak, Bytes{phase.allocated_peak});
    if (phase.iteration < steady || phase.allocated_peak <= peak) continue;
    peak = phase.allocated_peak;
    run.at_peak = phase.live_at_peak;
  }
  run.allocated_peak = Bytes{std::max<std::int64_t>(peak, 0)};
  const AllocatorStatistics& statistics = session.allocator().statistics();
  run.reserved_peak = std::max(Bytes{statistics.reserved_bytes.all.peak}, run.allocated_peak);
  run.retries = statistics.num_alloc_retries;
  run.uses_cublas = session.used_cublas();
  run.uses_cudnn = session.used_cudnn();
  run.uses_cufft = session.used_cufft();
}

// `vary`: every iteration has another length, where the usual ones all have the longest.
DryRun play(Session& session, const Job& job, const StepHook& reached, bool vary) {
  DryRun run;
  session.cudnn_benchmark = job.training.cudnn_benchmark;
  HostMemory host;
  const std::unique_ptr<Strategy> strategy = make_strategy(session, host.session(), job);
  if (session.computes() && (strategy || job.parallel.offload_activations)) {
    throw Error(ErrorKind::kInput,
                "parallel: several GPUs and offloading are estimated, not measured here; measure "
                "the job without them");
  }
  const Scoped<Session*> saved_on(session.saved_on,
                                  job.parallel.offload_activations ? &host.session() : nullptr);
  const BuildPlan plan = build_plan(job);
  const BuiltModel model = build_model(session, job, plan, run.assumptions);
  run.parameter_count = model.parameter_count();
  run.layers = model.layer_count();
  std::vector<Tensor> trainable = model.trainable();
  if (job.training.mode == Mode::kTrain) {
    for (const Tensor& parameter : trainable) run.trainable_count += parameter.elements();
    if (job.training.lora && trainable.empty()) {
      throw Error(ErrorKind::kInput,
                  "training.lora.targets names no linear layer of this model, so nothing would "
                  "learn; \"all-linear\" takes every one but the head");
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
      }
      summarize(session, run);
      break;
    }
    case Mode::kInference:
      infer(session, *model.network, job.training, reached);
      summarize(session, run);
      break;
    case Mode::kGenerate:
      generate(session, *model.network, job.training, reached);
      summarize(session, run);
      break;
  }
  run.host_peak = host.peak();
  return run;
}

DryRun play_on_dry_device(const Job& job, const DryRunOptions& options, bool vary) {
  DryDevice device;
  ArithmeticSegments memory;
  FrameworkPolicy policy = options.policy;
  std::unique_ptr<Allocator> allocator;
  if (job.allocator.backend == Backend::kNone) {
    allocator = std::make_unique<BareAllocator>();
    policy.counts_workspaces = false;
    policy.in_place_shortcuts = false;
  } else {
    if (options.device_memory) memory = ArithmeticSegments(*options.device_memory);
    allocator =
        std::make_unique<CachingAllocator>(memory, parse_allocator_options(job.allocator.options));
  }
  const WorkspaceModel& workspaces = options.workspaces != nullptr ? *options.workspaces : device;
  Session session(device, *allocator, workspaces, policy);
  return play(
      session, job, [](std::string_view) {}, vary);
}

DryRun run_on_dry_device(const Job& job, const DryRunOptions& options) {
  DryRun run = play_on_dry_device(job, options, false);
  const TrainingSpec& training = job.training;
  if (training.lengths == Lengths::kVarying && training.mode == Mode::kTrain &&
      job.allocator.backend == Backend::kCaching) {
    run.reserved_high =
        std::max(run.reserved_peak, play_on_dry_device(job, options, true).reserved_peak);
  }
  return run;
}

}  // namespace

DryRun run_in(Session& session, const Job& job, const StepHook& reached) {
  return play(session, job, reached, false);
}

DryRun run_dry(const Job& job, const DryRunOptions& options) {
  if (job.model.find("trace") != nullptr) return run_trace(job, options);
  if (job.parallel.tensor == 1 && job.parallel.pipeline == 1)
    return run_on_dry_device(job, options);
  std::vector<std::string> assumptions;
  Job part = one_gpus_job(job, assumptions);
  DryRun run;
  if (job.parallel.pipeline == 1) {
    run = run_on_dry_device(part, options);
  } else {
    // Stages between the two have what the first has, without its embedding.
    part.training.settings.stage = PipelineStage::kFirst;
    run = run_on_dry_device(part, options);
    part.training.settings.stage = PipelineStage::kLast;
    DryRun last = run_on_dry_device(part, options);
    const bool first_is_heavier = run.allocated_peak >= last.allocated_peak;
    if (!first_is_heavier) run = std::move(last);
    assumptions.push_back(fmt::format(
        "pipeline of {} stages (1F1B): the {} stage is the heaviest and is shown; the first holds "
        "{} micro-batches at once, the last one",
        job.parallel.pipeline, first_is_heavier ? "first" : "last", passes_in_flight(job)));
  }
  run.assumptions.insert(run.assumptions.begin(), assumptions.begin(), assumptions.end());
  run.parameter_count = count_parameters(job);
  return run;
}

ReplayedJob replayed(const DryRun& run) {
  ReplayedJob job;
  job.allocated_peak = run.allocated_peak;
  job.reserved_peak = run.reserved_peak;
  job.uses_cublas = run.uses_cublas;
  job.uses_cudnn = run.uses_cudnn;
  job.uses_cufft = run.uses_cufft;
  job.layers = run.layers;
  const auto sum = [&](std::initializer_list<Component> components) {
    Bytes total;
    for (const ComponentBytes& module : run.at_peak) {
      for (const Component c : components) total += Bytes{module[static_cast<std::size_t>(c)]};
    }
    return total;
  };
  job.states = sum({Component::kParameters, Component::kAdapterParameters, Component::kBuffers,
                    Component::kGradients, Component::kOptimizerState});
  job.activations = sum({Component::kActivations, Component::kKvCache, Component::kInputs});
  job.temporaries = sum({Component::kTemporaries});
  job.logits = sum({Component::kLogitsLoss});
  job.workspaces =
      sum({Component::kWorkspaceCublas, Component::kWorkspaceCudnn, Component::kWorkspaceCufft});
  return job;
}

}  // namespace memfathom

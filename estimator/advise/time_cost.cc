#include "estimator/advise/time_cost.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "core/document_path.h"
#include "estimator/parallel/strategy.h"

namespace memfathom {
namespace {

// A kernel cannot start more often than the host launches it: about 10 us for an eager operation,
// and about three kernels for each module with parameters.
constexpr double kLaunch = 10e-6;
constexpr double kKernelsPerLayer = 3;
// An 8-bit product casts and quantizes its input, looks for outlying columns, multiplies both kinds
// and joins them (bitsandbytes' MatMul8bitLt.forward with its default threshold).
constexpr double kMoreKernelsOfInt8 = 6;
// AdamW reads weight, gradient and two states and writes all but the gradient, in fp32.
constexpr double kAdamBytes = 28;
constexpr double kHalf = 2;              // bytes of a 16-bit number
constexpr double kMatricesOfExpert = 3;  // gate, up and down

double bytes_of(const Estimate& estimate, Component component) {
  double bytes = 0;
  for (const ComponentLine& line : estimate.components) {
    if (line.component == component) bytes += static_cast<double>(line.bytes.count());
  }
  return bytes;
}

// The most that is alive at a peak of any phase: at that of the optimizer's step there may be none.
double activations_of(const Estimate& estimate) {
  double most = bytes_of(estimate, Component::kActivations);
  for (const PhaseLine& phase : estimate.phases) {
    const auto index = static_cast<std::size_t>(Component::kActivations);
    most = std::max(most, static_cast<double>(phase.live_at_peak[index]));
  }
  return most;
}

double first_of(const Node& config, std::initializer_list<std::string_view> keys) {
  for (const std::string_view key : keys) {
    const Node* value = value_at(config, key);
    if (value != nullptr && value->is_number()) return value->unchecked_number();
  }
  return 0;
}

// What the FLOPs of a language model follow from; 0: its configuration does not say.
struct Shape {
  double hidden = 0, layers = 0;
  double experts = 0, used = 0;  // in a layer, and of them by a token
  double active_share = 1;       // of the parameters, that a token passes: less than 1 with experts
};

Shape shape_of(const Job& job, double parameters) {
  Shape shape;
  const NetworkConfig* network = job.model.config();
  if (network == nullptr) return shape;
  const Node& config = network->config;
  shape.hidden = first_of(config, {"hidden_size", "text_config.hidden_size", "n_embd", "d_model"});
  shape.layers = first_of(
      config, {"num_hidden_layers", "text_config.num_hidden_layers", "n_layer", "num_layers"});
  shape.experts = first_of(config, {"num_local_experts", "num_experts", "n_routed_experts"});
  shape.used = first_of(config, {"num_experts_per_tok", "num_experts_per_token"});
  const double width = first_of(config, {"moe_intermediate_size", "intermediate_size"});
  if (shape.experts > shape.used && shape.used > 0) {
    const double of_experts = std::min(
        parameters, shape.layers * shape.experts * kMatricesOfExpert * shape.hidden * width);
    shape.active_share = 1 - of_experts * (1 - shape.used / shape.experts) / parameters;
  }
  return shape;
}

// The modules that so many tokens pass. Where each expert has modules of its own (quantized ones
// have), those of experts that no token is sent to are not called.
double called_modules(const Estimate& estimate, const Shape& shape, double tokens) {
  const auto modules = static_cast<double>(estimate.layers);
  const double of_experts = shape.layers * shape.experts * kMatricesOfExpert;
  if (of_experts == 0 || modules <= of_experts) return modules;
  return modules - of_experts * (1 - std::min(1.0, tokens * shape.used / shape.experts));
}

bool is_16_bit(const Job& job) {
  return job.training.precision.autocast.has_value() ||
         job.training.precision.parameters != DType::kFp32 ||
         job.training.quantization != Quantization::kNone;
}

// Over one micro-batch: generation has one for each new token after the first.
double forward_passes(const Job& job) {
  if (job.training.mode != Mode::kGenerate) return 1;
  return static_cast<double>(std::max<std::int64_t>(job.training.settings.new_tokens, 1));
}

// The forward passes over a micro-batch. One over whole sequences: 2 FLOPs per parameter and token
// and those of attention (Kaplan et al., Scaling Laws for Neural Language Models, 2020,
// section 2.1), but no faster than its activations are written and read, and no faster than its
// kernels are launched.
double forward_time(const Job& job, const Estimate& estimate, const GpuSpeed& speed,
                    double written) {
  const ParallelSpec& parallel = job.parallel;
  const double divided = static_cast<double>(parallel.tensor * parallel.pipeline);
  const auto parameters = static_cast<double>(estimate.parameter_count);
  const double length = static_cast<double>(job.training.settings.sequence_length) *
                        (job.training.preference ? 2 : 1);
  const double tokens = length * static_cast<double>(job.training.batch_size);
  const Shape shape = shape_of(job, std::max(parameters, 1.0));
  const double flops =
      tokens * (2 * parameters * shape.active_share + 2 * shape.layers * shape.hidden * length);
  const double rate = is_16_bit(job) ? speed.flops_16_bit : speed.flops_32_bit;
  const double kernels =
      kKernelsPerLayer +
      (job.training.quantization == Quantization::kInt8 ? kMoreKernelsOfInt8 : 0);
  const auto launches = [&](double rows) {
    return called_modules(estimate, shape, rows) * kernels * kLaunch / divided;
  };
  const double whole =
      std::max({flops / rate / divided, tokens > 0 ? 0 : 2 * written / speed.memory,
                launches(std::max(tokens, 1.0))});
  // Each further token of a sequence reads the weights and the cache again; quantized weights as
  // they are stored (bitsandbytes' gemm_4bit and int8_scaled_mm, the kernels of GPTQ and AWQ).
  const double batch = static_cast<double>(job.training.batch_size);
  const double stored = job.training.quantization == Quantization::kNone
                            ? parameters * (is_16_bit(job) ? kHalf : 2 * kHalf) / divided
                            : bytes_of(estimate, Component::kParameters);
  const double read =
      std::min(1.0, shape.active_share * batch) * stored + bytes_of(estimate, Component::kKvCache);
  const double token = std::max({batch * 2 * parameters * shape.active_share / rate / divided,
                                 read / speed.memory, launches(batch)});
  return whole + (forward_passes(job) - 1) * token;
}

// How many forward passes a step's work on one micro-batch is worth. The gradient of an input and
// that of a weight cost one forward pass each; frozen weights have none.
double passes(const Job& job, const Estimate& estimate) {
  if (job.training.mode != Mode::kTrain) return 1;
  const double trained = static_cast<double>(estimate.trainable_count) /
                         static_cast<double>(std::max<std::int64_t>(estimate.parameter_count, 1));
  double count = 2 + trained;
  if (job.training.settings.checkpointing == Checkpointing::kFull) count += 1;
  if (job.training.settings.checkpointing == Checkpointing::kSelective) count += 0.5;
  return count;
}

// How often the weights are unpacked into 16-bit ones for one micro-batch: before each product of
// many rows, of 8-bit weights only for the gradient of their input (bitsandbytes'
// autograd/_functions.py, MatMul4Bit and MatMul8bitLt).
double unpackings(const Job& job) {
  const bool trains = job.training.mode == Mode::kTrain;
  switch (job.training.quantization) {
    case Quantization::kNone: return 0;
    case Quantization::kInt8: return trains ? 1 : 0;
    case Quantization::kNf4:
    case Quantization::kNf4Double:
    case Quantization::kGptq:
    case Quantization::kAwq:
    case Quantization::kFp8:
    case Quantization::kMxfp4: break;
  }
  const bool repeats = job.training.settings.checkpointing == Checkpointing::kFull;
  return trains ? (repeats ? 3 : 2) : 1;
}

double dequantization(const Job& job, const Estimate& estimate, double micro_steps,
                      const GpuSpeed& speed) {
  const double times = micro_steps * unpackings(job);
  if (times == 0) return 0;
  const auto parameters = static_cast<double>(std::max<std::int64_t>(estimate.parameter_count, 1));
  const double frozen = static_cast<double>(estimate.parameter_count - estimate.trainable_count);
  const double packed = bytes_of(estimate, Component::kParameters);
  const double tokens =
      static_cast<double>(std::max<std::int64_t>(job.training.settings.sequence_length, 1)) *
      static_cast<double>(job.training.batch_size);
  const double touched = std::min(1.0, tokens * shape_of(job, parameters).active_share);
  return times * touched * (packed + 2 * kHalf * frozen) / speed.memory;
}

// Bytes over the GPUs' links in one optimizer step (Rajbhandari et al., ZeRO, 2020, section 7): a
// ring sends a tensor twice to sum it, once to scatter or to gather it.
double link_bytes(const Job& job, double weights, double gradients, double micro_steps) {
  const ParallelSpec& parallel = job.parallel;
  const auto ranks = static_cast<double>(data_parallel_size(parallel));
  if (ranks < 2) return 0;
  const double ring = (ranks - 1) / ranks;
  const bool trains = job.training.mode == Mode::kTrain;
  if (parallel.zero_stage == 3 || parallel.fsdp != Fsdp::kNone)
    return ring * micro_steps * ((trains ? 2 : 1) * weights + gradients);
  if (parallel.zero_stage == 2) return ring * (micro_steps + 1) * gradients;
  return ring * 2 * gradients;
}

bool is_sharded(const ParallelSpec& parallel) {
  return parallel.zero_stage == 3 || parallel.fsdp != Fsdp::kNone;
}

}  // namespace

StepTime step_time(const Job& job, const Estimate& estimate, const GpuSpeed& speed,
                   const PassTraffic& traffic) {
  const ParallelSpec& parallel = job.parallel;
  const bool trains = job.training.mode == Mode::kTrain;
  const auto ranks = static_cast<double>(std::max<std::int64_t>(data_parallel_size(parallel), 1));
  const auto micro_steps = trains ? static_cast<double>(job.training.accumulation_steps) : 1.0;
  const double weights = kHalf * static_cast<double>(estimate.parameter_count);
  const double trained = trains ? static_cast<double>(estimate.trainable_count) : 0.0;
  const double gradients = kHalf * trained;
  const bool splits_states = parallel.zero_stage > 0 || parallel.fsdp != Fsdp::kNone;
  const double own = splits_states ? trained / ranks : trained;  // parameters that it updates

  StepTime time;
  time.samples = static_cast<double>(job.training.batch_size) * micro_steps;
  const double forward = forward_time(job, estimate, speed, traffic.written);
  time.compute = micro_steps * forward * passes(job, estimate);
  const double backward = time.compute - micro_steps * forward;
  const double uses = micro_steps * (trains ? 2 : forward_passes(job));  // of each weight
  time.memory = dequantization(job, estimate, micro_steps, speed);
  // Each pass after the first reads the sum so far and writes it again.
  time.memory += 3 * (micro_steps - 1) * gradients / speed.memory;
  if (parallel.offload_optimizer) {
    const auto sharing = static_cast<double>(estimate.totals.ranks_per_node);
    time.host = own * kAdamBytes * sharing / speed.host_memory;
    const double down = micro_steps * kHalf * own / speed.host_link;
    time.host_link += std::max(0.0, down - backward) + kHalf * own / speed.host_link;
  } else if (trains) {
    const double states = bytes_of(estimate, Component::kOptimizerState);
    time.memory += (2 * states + 3 * 4 * own) / speed.memory;
  }
  time.gpu_link =
      std::max(0.0, link_bytes(job, weights, gradients, micro_steps) / speed.gpu_link - backward);
  if (parallel.offload_parameters) {
    const bool sharded = is_sharded(parallel);
    const double copies = uses * weights / (sharded ? ranks : 1.0);
    // ZeRO-3 and FSDP fetch the next block while one computes.
    time.host_link += std::max(0.0, copies / speed.host_link - (sharded ? time.compute : 0));
  }
  // There and back, in the order of the computation.
  time.host_link += 2 * micro_steps * traffic.offloaded / speed.host_link;
  return time;
}

TimeCost compared(const StepTime& before, const StepTime& after) {
  constexpr double kNoticed = 0.005;
  TimeCost cost;
  const double whole = before.total() / before.samples;
  if (!(whole > 0)) return cost;
  cost.factor = after.total() / after.samples / whole;
  const std::array<std::pair<const char*, double StepTime::*>, 5> parts{
      {{"computing", &StepTime::compute},
       {"GPU memory", &StepTime::memory},
       {"links between GPUs", &StepTime::gpu_link},
       {"link to the host", &StepTime::host_link},
       {"optimizer on the host", &StepTime::host}}};
  for (const auto& [name, part] : parts) {
    const double share = (after.*part / after.samples - before.*part / before.samples) / whole;
    if (std::abs(share) < kNoticed) continue;
    cost.basis += fmt::format("{}{} {:+.0f} %", cost.basis.empty() ? "" : ", ", name, 100 * share);
  }
  if (cost.basis.empty()) cost.basis = "no more FLOPs or bytes over a link";
  return cost;
}

TimeCost time_cost(EstimateCache& answers, const Patch& patch) {
  const auto offloaded = [&](const Patch& changes, const Job& job) {
    if (!job.parallel.offload_activations) return 0.0;
    const Estimate* kept =
        answers.of(joined(changes, {{"parallel.offload.activations", Node::string("none")}}));
    return kept == nullptr ? 0.0 : activations_of(*kept);
  };
  // A changed job writes what the unchanged one does for each sample, in numbers of its own size;
  // what it keeps of that is another matter.
  const auto numbers = [](const Job& job) {
    return (is_16_bit(job) ? kHalf : 2 * kHalf) * static_cast<double>(job.training.batch_size);
  };
  const Job& job = answers.job();
  const GpuSpeed speed = gpu_speed(job);
  const Job changed = answers.variant(patch);
  const double written = activations_of(answers.base());
  return compared(
      step_time(job, answers.base(), speed, {written, offloaded({}, job)}),
      step_time(changed, *answers.of(patch), speed,
                {written * numbers(changed) / numbers(job), offloaded(patch, changed)}));
}

}  // namespace memfathom

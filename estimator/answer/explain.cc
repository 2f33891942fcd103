#include "estimator/answer/explain.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>

#include "core/coefficients.h"
#include "estimator/models/blocks/config_reader.h"

namespace memfathom {
namespace {

// 6,738,415,616
std::string grouped(std::int64_t number) {
  std::string digits = std::to_string(number);
  for (std::size_t i = digits.size(); i > 3 && digits[0] != '-';) {
    i -= 3;
    digits.insert(i, ",");
  }
  return digits;
}

double ratio(Bytes bytes, std::int64_t count) {
  return count > 0 ? static_cast<double>(bytes.count()) / static_cast<double>(count) : 0;
}

std::string plural(std::int64_t count, std::string_view what) {
  return fmt::format("{} {}{}", grouped(count), what, count == 1 ? "" : "s");
}

// What the sentences need of the job beside the lines themselves.
struct Facts {
  const Job& job;
  const DryRun& run;
  const Estimate& estimate;
  const Calibration* calibration;
  std::int64_t tokens = 0;      // of a micro-batch; 0: the job has no sequences
  std::int64_t vocabulary = 0;  // 0: not known
  std::int64_t layers = 0;
  std::string peak_phase;

  const TrainingSpec& training() const { return job.training; }
};

Facts facts_of(const Job& job, const DryRun& run, const Estimate& estimate,
               const Calibration* calibration) {
  Facts facts{job, run, estimate, calibration};
  const TrainingSpec& training = job.training;
  facts.tokens =
      training.batch_size * training.settings.sequence_length * (training.preference ? 2 : 1);
  if (const NetworkConfig* model = job.model.config()) {
    facts.vocabulary = count_or(model->config, {"vocab_size"}, 0, kMaxTokens);
    facts.layers =
        count_or(model->config, {"num_hidden_layers", "n_layer", "num_layers"}, 0, kMaxLayers);
  }
  for (const PhaseLine& phase : estimate.phases) {
    if (phase.iteration != 1 && phase.allocated_peak == estimate.totals.allocated_peak)
      facts.peak_phase = phase.name;
  }
  return facts;
}

// "= 6,738,415,616 x 2 B + 1.2 MiB", or what a parameter costs where that is not the whole story.
std::string per_parameter(Bytes bytes, std::int64_t count, double each, std::string_view what) {
  const auto product = static_cast<std::int64_t>(static_cast<double>(count) * each);
  const Bytes rest = bytes - Bytes{product};
  const double off = ratio(rest, std::max<std::int64_t>(product, 1));
  if (off < -0.001 || off > 0.01)
    return fmt::format("{:.3f} B for each of the {} {}", ratio(bytes, count), grouped(count), what);
  std::string text = fmt::format("{} {} x {:g} B", grouped(count), what, each);
  if (rest.count() > 0)
    text += fmt::format(" + {} for rounding each tensor up to 512 B", to_string(rest));
  return text;
}

double bytes_of(DType type) { return bits_of(type) / 8.0; }

std::string sharing(const ParallelSpec& parallel) {
  if (parallel.tensor > 1 || parallel.pipeline > 1)
    return fmt::format("; one GPU's part of {}",
                       plural(parallel.tensor * parallel.pipeline, "GPU"));
  if (parallel.num_gpus > 1 && (parallel.zero_stage > 0 || parallel.fsdp != Fsdp::kNone))
    return fmt::format("; divided over {}", plural(parallel.num_gpus, "GPU"));
  return "";
}

std::string parameters_text(const Facts& f, Bytes bytes) {
  // Adapters have a line of their own.
  const std::int64_t count =
      f.run.parameter_count - (f.training().lora ? f.run.trainable_count : 0);
  std::string text =
      per_parameter(bytes, count, bytes_of(f.training().precision.parameters), "parameters");
  if (f.training().quantization != Quantization::kNone) text += "; matrices are quantized";
  return text + sharing(f.job.parallel);
}

std::string gradients_text(const Facts& f, Bytes bytes) {
  return fmt::format("{:.2f} B for each of {} trainable parameters, in the {} phase{}",
                     ratio(bytes, f.run.trainable_count), grouped(f.run.trainable_count),
                     f.peak_phase, sharing(f.job.parallel));
}

std::string_view states_of(OptimizerName name) {
  switch (name) {
    case OptimizerName::kNone:
    case OptimizerName::kSgd: return "no states";
    case OptimizerName::kSgdMomentum:
    case OptimizerName::kLion: return "one state (momentum)";
    case OptimizerName::kAdam:
    case OptimizerName::kAdamW: return "two states (mean and variance of the gradients)";
    case OptimizerName::kAdamW8bit: return "two 8-bit states with scales per block of 256";
    case OptimizerName::kAdafactor: return "row and column variances";
    case OptimizerName::kRmsprop: return "one state (mean square)";
    case OptimizerName::kAdagrad: return "one state (sum of squares)";
  }
  return "";
}

std::string optimizer_text(const Facts& f, Bytes bytes) {
  const OptimizerOptions optimizer = f.training().optimizer_options();
  std::string text =
      fmt::format("{}: {}, {:.2f} B for each of {} trainable parameters", enum_name(optimizer.form),
                  states_of(optimizer.name), ratio(bytes, f.run.trainable_count),
                  grouped(f.run.trainable_count));
  if (optimizer.master_weights) text += ", including their fp32 copies";
  return text + sharing(f.job.parallel);
}

std::string activations_text(const Facts& f, Bytes bytes) {
  const TrainingSpec& training = f.training();
  std::string text;
  if (f.tokens > 0) {
    text = fmt::format("{} tokens ({}{} of {}) x {:.0f} B", grouped(f.tokens),
                       plural(training.batch_size, "sample"),
                       training.preference ? ", each a pair" : "",
                       grouped(training.settings.sequence_length), ratio(bytes, f.tokens));
    if (f.layers > 0)
      text += fmt::format(" ({:.0f} B per token and layer, {} layers)",
                          ratio(bytes, f.tokens * f.layers), f.layers);
  } else {
    text = fmt::format("{} x {}", plural(training.batch_size, "sample"),
                       to_string(Bytes{bytes.count() / training.batch_size}));
  }
  text += training.mode == Mode::kTrain ? ": saved by autograd for backward"
                                        : ": tensors alive at the peak";
  switch (training.settings.checkpointing) {
    case Checkpointing::kNone: break;
    case Checkpointing::kFull:
      text +=
          "; with checkpointing, the inputs of the blocks and the activations of the one block "
          "being recomputed";
      break;
    case Checkpointing::kSelective:
      text +=
          "; in checkpointed blocks, the results of attention and of every second matrix product "
          "are saved";
      break;
  }
  if (training.precision.autocast) text += "; including autocast's copies of the weights";
  return text;
}

std::string logits_text(const Facts& f, Bytes bytes) {
  const bool has_logits =
      f.tokens > 0 && f.vocabulary > 0 && bytes.count() >= f.tokens * f.vocabulary;
  if (!has_logits) return "the output, the loss and their gradients";
  return fmt::format(
      "{} tokens x {} vocabulary entries x {:.1f} B: the logits, log-probabilities and gradients "
      "alive at the peak, in 16 or 32 bits",
      grouped(f.tokens), grouped(f.vocabulary), ratio(bytes, f.tokens * f.vocabulary));
}

std::string cache_text(const Facts& f, Bytes bytes) {
  const std::int64_t tokens = f.training().batch_size * (f.training().settings.sequence_length +
                                                         f.training().settings.new_tokens);
  return fmt::format("keys and values of {} tokens x {:.0f} B{}", grouped(tokens),
                     ratio(bytes, tokens),
                     f.layers > 0 ? fmt::format(" over {} layers", f.layers) : "");
}

std::string slack_text(const Facts& f, Bytes) {
  const Totals& totals = f.estimate.totals;
  std::string text = fmt::format(
      "reserved {} - allocated {}: rounding of segments to 2 MiB and "
      "20 MiB, and free blocks between live ones",
      to_string(totals.reserved_peak), to_string(totals.allocated_peak));
  if (f.run.retries > 0)
    text += fmt::format("; the allocator released its cache {}", plural(f.run.retries, "time"));
  return text;
}

std::string coefficient_text(const Facts& f, const ComponentLine& line) {
  std::string text = describe_coefficient(line.coefficient);
  if (f.calibration == nullptr) return text + "; a documented default, nothing was calibrated";
  for (const Coefficient& c : f.calibration->coefficients) {
    if (c.name != line.coefficient) continue;
    text += fmt::format(
        "; {} = {} +- {} ({}", c.name, to_string(Bytes{static_cast<std::int64_t>(c.value)}),
        to_string(Bytes{static_cast<std::int64_t>(c.standard_error)}), to_string(line.source));
    if (c.samples > 0) text += fmt::format(", {}", plural(c.samples, "sample"));
    text += fmt::format(", calibration {} of {})", f.calibration->name, f.calibration->created);
    return text;
  }
  return text + fmt::format("; a documented default, {} does not have it", f.calibration->name);
}

std::string communication_text(const Facts& f, Source source) {
  if (source == Source::kExact)
    return "buckets of gradients and gathered parameters, in PyTorch's allocator";
  const ParallelSpec& p = f.job.parallel;
  return fmt::format(
      "NCCL's buffers outside the allocator: one communicator each for data ({} GPUs), tensor ({}) "
      "and pipeline ({}) parallelism, where it has more than one GPU",
      p.num_gpus / std::max<std::int64_t>(1, p.tensor * p.pipeline), p.tensor, p.pipeline);
}

std::string text_of(const Facts& f, const ComponentLine& line) {
  if (!line.coefficient.empty()) return coefficient_text(f, line);
  switch (line.component) {
    case Component::kParameters: return parameters_text(f, line.bytes);
    case Component::kBuffers: return "the model's buffers: running statistics, lookup tables";
    case Component::kGradients: return gradients_text(f, line.bytes);
    case Component::kOptimizerState: return optimizer_text(f, line.bytes);
    case Component::kActivations: return activations_text(f, line.bytes);
    case Component::kTemporaries:
      return fmt::format(
          "results and copies of the operation that runs at the peak, in the {} phase",
          f.peak_phase);
    case Component::kLogitsLoss: return logits_text(f, line.bytes);
    case Component::kInputs:
      return fmt::format("the batch: {} with targets", plural(f.training().batch_size, "sample"));
    case Component::kKvCache: return cache_text(f, line.bytes);
    case Component::kAdapterParameters:
      return f.training().lora
                 ? fmt::format("adapters of rank {}: {:.2f} B for each of {} parameters",
                               f.training().lora->rank, ratio(line.bytes, f.run.trainable_count),
                               grouped(f.run.trainable_count))
                 : "adapters after the blocks";
    case Component::kWorkspaceCublas:
      return "one cuBLAS workspace per handle and stream; kept until exit before PyTorch 2.15, "
             "released after each call from 2.15 on; its size depends on the PyTorch version and "
             "the GPU";
    case Component::kWorkspaceCudnn:
      return "the workspace of the execution plan that cuDNN picks for the convolution at the peak";
    case Component::kWorkspaceCufft: return "the work area of the transform at the peak";
    case Component::kAllocatorSlack: return slack_text(f, line.bytes);
    case Component::kCommunication: return communication_text(f, line.source);
    case Component::kContext:
    case Component::kFramework:
    case Component::kUnaccounted: break;
  }
  return "";
}

// Where a larger job need not take more.
void add_causes(const Facts& f, std::vector<Explanation>& list) {
  const auto bytes_of_component = [&](Component component) {
    Bytes total;
    for (const ComponentLine& line : f.estimate.components)
      if (line.component == component) total += line.bytes;
    return total;
  };
  if (bytes_of_component(Component::kAllocatorSlack).count() > 0) {
    list.push_back(
        {"reserved", "",
         "reserved memory may grow in steps, or even shrink: the allocator reuses free blocks by "
         "best fit, so a slightly larger tensor may need a new segment where a smaller one reused "
         "a block, or the other way round; expandable_segments:True avoids most of this"});
  }
  if (f.run.asks_cudnn && f.job.allocator.backend == Backend::kCaching) {
    list.push_back({"device", "",
                    "the device total may not grow smoothly with the batch size: cuDNN may pick a "
                    "plan with a smaller workspace for another shape"});
  }
  if (f.run.reserved_high > f.run.reserved_peak) {
    list.push_back({"reserved", "",
                    fmt::format("varying lengths: {} is reserved if every sample has the maximum "
                                "length; a replay of random lengths reached {}",
                                to_string(f.run.reserved_peak), to_string(f.run.reserved_high))});
  }
}

}  // namespace

std::vector<Explanation> explain(const Job& job, const DryRun& run, const Estimate& estimate,
                                 const Calibration* calibration) {
  const Facts facts = facts_of(job, run, estimate, calibration);
  std::vector<Explanation> list;
  for (const ComponentLine& line : estimate.components) {
    const std::string name =
        line.coefficient.empty() ? std::string(to_string(line.component)) : line.coefficient;
    list.push_back({name, line.module,
                    fmt::format("{} = {} ({})", to_string(line.bytes), text_of(facts, line),
                                to_string(line.source))});
  }
  add_causes(facts, list);
  for (const SpreadPart& part : estimate.uncertainty) {
    list.push_back(
        {"interval: " + part.name, "",
         fmt::format("-{} / +{}: {}", to_string(part.below), to_string(part.above), part.text)});
  }
  return list;
}

}  // namespace memfathom

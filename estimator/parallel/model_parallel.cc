#include "estimator/parallel/model_parallel.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "core/error.h"
#include "estimator/models/registry.h"

namespace memfathom {
namespace {

constexpr std::int64_t kMax = std::int64_t{1} << 40;

std::int64_t divided(const Node& config, std::string_view key, std::int64_t by) {
  const Node& value = config.at(key);
  const std::int64_t number = value.as_int(1, kMax);
  if (number % by != 0)
    value.refuse(fmt::format("parallel.tensor is {}, which must divide it", by));
  return number / by;
}

void split_tensors(Node& config, std::int64_t by) {
  const Node* type = config.find("model_type");
  const ModelFamily* family = type != nullptr ? find_language_family(type->as_string()) : nullptr;
  if (family == nullptr || !family->traits.has_tensor_parallel) {
    throw Error(ErrorKind::kInput,
                "parallel.tensor splits models of the Llama kind (llama, mistral, qwen2, phi3, "
                "gemma, granite, ...); this one is not of it, use 1");
  }
  const std::int64_t heads = config.at("num_attention_heads").as_int(1, kMax);
  const std::int64_t hidden = config.at("hidden_size").as_int(1, kMax);
  const Node* kv = config.find("num_key_value_heads");
  const std::int64_t kv_heads = kv != nullptr && !kv->is_null() ? kv->as_int(1, kMax) : heads;
  const Node* size = config.find("head_dim");
  if (size == nullptr || size->is_null()) config.set("head_dim", Node::integer(hidden / heads));
  config.set("num_attention_heads", Node::integer(divided(config, "num_attention_heads", by)));
  config.set("num_key_value_heads",
             Node::integer(std::max<std::int64_t>(1, kv_heads / by)));  // fewer than ranks: copied
  config.set("intermediate_size", Node::integer(divided(config, "intermediate_size", by)));
  const std::int64_t vocabulary = config.at("vocab_size").as_int(1, kMax);
  config.set("vocab_size", Node::integer((vocabulary + by - 1) / by));
}

void split_blocks(Node& config, std::int64_t by) {
  for (const std::string_view key : {"num_hidden_layers", "n_layer"}) {
    const Node* layers = config.find(key);
    if (layers == nullptr) continue;
    const std::int64_t count = layers->as_int(1, kMax);
    if (count < by)
      layers->refuse(fmt::format("parallel.pipeline is {}, more than there are blocks", by));
    config.set(key, Node::integer((count + by - 1) / by));
    return;
  }
  throw Error(ErrorKind::kInput,
              "parallel.pipeline splits causal language models by their blocks, and this model's "
              "configuration has no num_hidden_layers or n_layer; use 1");
}

// Megatron's sequence parallelism: between the matrix products each GPU of the tensor-parallel
// group holds its part of the positions.
void split_positions(Job& part, std::vector<std::string>& assumptions) {
  ModelSettings& settings = part.training.settings;
  const std::int64_t by = part.parallel.tensor;
  if (settings.sequence_length % by != 0) {
    throw Error(
        ErrorKind::kInput,
        fmt::format("training.sequence_length is {}, which parallel.tensor ({}) must divide "
                    "where parallel.sequence_parallel is on",
                    settings.sequence_length, by));
  }
  if (part.training.mode == Mode::kGenerate) {
    throw Error(ErrorKind::kInput,
                "parallel.sequence_parallel divides the positions of a training or forward pass; "
                "generation reads one at a time, turn it off");
  }
  settings.sequence_shards = by;
  assumptions.push_back(
      fmt::format("sequence parallel: norms, residuals and what is kept of a product's input are "
                  "divided over the {} GPUs of the tensor-parallel group, as Megatron does it",
                  by));
}

}  // namespace

Job job_of_one_gpu(const Job& job, std::vector<std::string>& assumptions) {
  const ParallelSpec& parallel = job.parallel;
  if (parallel.tensor == 1 && parallel.pipeline == 1) return job;
  const NetworkConfig* whole = job.model.config();
  if (whole == nullptr)
    job.model.source().refuse(
        "parallel.tensor and parallel.pipeline split models given by preset, config or parameters");
  assumptions.insert(assumptions.end(), whole->assumptions.begin(), whole->assumptions.end());
  Node config = whole->config;
  Job part = job;
  if (parallel.tensor > 1) {
    split_tensors(config, parallel.tensor);
    assumptions.push_back(
        fmt::format("tensor parallel over {} GPUs: heads, feed-forward width and vocabulary are "
                    "divided, hidden states and norms are not",
                    parallel.tensor));
  }
  if (parallel.sequence_parallel) split_positions(part, assumptions);
  if (parallel.pipeline > 1) {
    if (job.training.mode != Mode::kTrain) {
      throw Error(ErrorKind::kInput,
                  "parallel.pipeline is estimated for training only; for inference use "
                  "parallel.tensor, or give the blocks of one stage as the model");
    }
    if (job.training.preference) {
      throw Error(
          ErrorKind::kInput,
          fmt::format("training.preference is not estimated with parallel.pipeline {}: only "
                      "the last stage has logits; use parallel.tensor, zero_stage or fsdp",
                      parallel.pipeline));
    }
    split_blocks(config, parallel.pipeline);
  }
  part.model = job.model.with_config(std::move(config));
  return part;
}

std::int64_t micro_batches_in_flight(const Job& job) {
  const std::int64_t stages = job.parallel.pipeline;
  const std::int64_t micro = job.training.accumulation_steps;
  return micro == 1 ? stages : std::min(stages, micro);
}

}  // namespace memfathom

// Megatron-LM's arguments, and those of ms-swift's `megatron sft`.
#include <fmt/format.h>

#include <array>
#include <cstdint>
#include <string>

#include "core/error.h"
#include "estimator/command_line/reading.h"
#include "estimator/readers/formats.h"

namespace memfathom {
namespace {

constexpr std::int64_t kMaxCount = std::int64_t{1} << 40;

void set_config(CommandReading& reading, std::string_view key, std::int64_t value) {
  reading.parsed.set(fmt::format("model.config.{}", key), Node::integer(value));
}

std::int64_t count_of(const CommandReading& reading, std::initializer_list<std::string_view> keys,
                      std::int64_t otherwise) {
  const Node* value = first_flag(reading, keys);
  return value != nullptr ? value->as_int(1, kMaxCount) : otherwise;
}

// Llama's layers where the flags ask for its norms or its feed-forward network, else GPT-2's.
void set_decoder(CommandReading& reading, const Node& width, const Node& depth) {
  const std::int64_t hidden = width.as_int(1, kMaxCount);
  const bool swiglu = reading.is_set("swiglu");
  const std::string normalization = reading.text("normalization");
  const bool llama = swiglu || normalization == "RMSNorm";
  const std::int64_t heads = count_of(reading, {"num_attention_heads"}, 1);
  const std::int64_t inner = count_of(reading, {"ffn_hidden_size"}, 4 * hidden);
  const std::int64_t experts = count_of(reading, {"num_experts"}, 1);
  const std::int64_t vocabulary =
      count_of(reading, {"padded_vocab_size", "vocab_size"}, llama ? 32000 : 50304);
  if (reading.flag("padded_vocab_size") == nullptr && reading.flag("vocab_size") == nullptr)
    reading.assume(fmt::format("{}: the size of the vocabulary is the tokenizer's: {} was assumed",
                               reading.file, vocabulary));
  const std::int64_t positions = count_of(reading, {"max_position_embeddings", "seq_length"}, 2048);
  if (!llama) {
    reading.parsed.set("model.config.model_type", Node::string("gpt2"));
    set_config(reading, "n_embd", hidden);
    set_config(reading, "n_layer", depth.as_int(1, kMaxCount));
    set_config(reading, "n_head", heads);
    if (inner != 4 * hidden) set_config(reading, "n_inner", inner);
    set_config(reading, "n_positions", positions);
    set_config(reading, "vocab_size", vocabulary);
    return;
  }
  const bool grouped = reading.is_set("group_query_attention");
  const std::int64_t groups = count_of(reading, {"num_query_groups"}, 1);
  reading.parsed.set("model.config.model_type", Node::string(experts > 1 ? "mixtral" : "llama"));
  set_config(reading, "hidden_size", hidden);
  set_config(reading, "num_hidden_layers", depth.as_int(1, kMaxCount));
  set_config(reading, "num_attention_heads", heads);
  set_config(reading, "num_key_value_heads", grouped ? groups : heads);
  if (const Node* size = reading.flag("kv_channels"))
    set_config(reading, "head_dim", size->as_int(1, kMaxCount));
  set_config(reading, "max_position_embeddings", positions);
  set_config(reading, "vocab_size", vocabulary);
  set_config(reading, "intermediate_size",
             experts > 1 ? count_of(reading, {"moe_ffn_hidden_size"}, inner) : inner);
  if (experts > 1) {
    set_config(reading, "num_local_experts", experts);
    set_config(reading, "num_experts_per_tok", count_of(reading, {"moe_router_topk"}, 2));
  }
  reading.parsed.set("model.config.tie_word_embeddings",
                     Node::boolean(!reading.is_set("untie_embeddings_and_output_weights")));
}

void set_model(CommandReading& reading) {
  for (const char* key : {"model", "load_safetensors_from"}) {
    if (const std::string name = reading.text(key); !name.empty()) reading.parsed.base_model = name;
  }
  const Node* width = reading.flag("hidden_size");
  const Node* depth = reading.flag("num_layers");
  if (!reading.parsed.base_model.empty() || width == nullptr || depth == nullptr) return;
  if (reading.launch.program.find("bert") != std::string::npos ||
      reading.launch.program.find("t5") != std::string::npos ||
      reading.launch.program.find("vision") != std::string::npos ||
      reading.launch.program.find("mamba") != std::string::npos ||
      reading.launch.program.find("retro") != std::string::npos)
    throw Error(ErrorKind::kInput,
                fmt::format("{}: {} trains another network than the decoder that its flags are "
                            "read as; give --model FOLDER with its config.json",
                            reading.file, reading.launch.program));
  set_decoder(reading, *width, *depth);
}

void set_degrees(CommandReading& reading) {
  ParsedFile& parsed = reading.parsed;
  const std::int64_t tensor = count_of(reading, {"tensor_model_parallel_size"}, 1);
  const std::int64_t stages = count_of(reading, {"pipeline_model_parallel_size"}, 1);
  if (tensor > 1) parsed.set("parallel.tensor", Node::integer(tensor));
  if (stages > 1) parsed.set("parallel.pipeline", Node::integer(stages));
  if (reading.is_set("sequence_parallel") && tensor > 1)
    parsed.set("parallel.sequence_parallel", Node::boolean(true));
  if (reading.is_set("use_distributed_optimizer"))
    parsed.set("parallel.zero_stage", Node::integer(1));
  for (const char* key :
       {"context_parallel_size", "expert_model_parallel_size", "expert_tensor_parallel_size"}) {
    if (const Node* degree = reading.flag(key);
        degree != nullptr && degree->is_int() && degree->as_int() > 1)
      reading.leave_open(
          key, "sharding",
          fmt::format("{}: {} {} divides what every GPU of it is counted to have whole",
                      reading.file, key, degree->as_int()));
  }
}

void set_precision(CommandReading& reading) {
  const bool bf16 = reading.is_set("bf16");
  if (!bf16 && !reading.is_set("fp16")) return;
  reading.parsed.set("training.precision", Node::string(bf16 ? "bf16" : "fp16"));
  reading.parsed.set("training.optimizer.name",
                     Node::string(reading.text("optimizer") == "sgd" ? "sgd" : "adamw"));
  reading.parsed.set("training.optimizer.master_weights", Node::boolean(true));
  reading.leave_open(bf16 ? "bf16" : "fp16", "precision",
                     fmt::format("{}: Megatron's contiguous fp32 gradient buffers; counted as "
                                 "gradients in the weights' type plus fp32 master weights",
                                 reading.file));
}

void set_recomputation(CommandReading& reading) {
  const std::string granularity = reading.text("recompute_granularity");
  if (!granularity.empty()) {
    reading.parsed.set("training.gradient_checkpointing",
                       Node::string(granularity == "full" ? "full" : "selective"));
  } else if (reading.is_set("recompute_activations")) {
    reading.parsed.set("training.gradient_checkpointing", Node::string("selective"));
  }
}

// ms-swift's flags over Megatron's.
void set_adapters(CommandReading& reading) {
  std::string tuner = reading.text("tuner_type");
  if (tuner.empty()) tuner = reading.text("train_type");
  if (tuner != "lora") return;
  const Node* rank = reading.flag("lora_rank");
  reading.parsed.set("training.lora.rank", rank != nullptr ? *rank : Node::integer(8));
  const Node* targets = reading.flag("target_modules");
  reading.parsed.set("training.lora.targets",
                     targets != nullptr ? lora_targets(*targets) : Node::string("all-linear"));
}

void read(CommandReading& reading) {
  set_model(reading);
  set_degrees(reading);
  set_precision(reading);
  set_recomputation(reading);
  set_adapters(reading);
  if (const Node* batch = reading.flag("micro_batch_size"))
    reading.parsed.set("training.batch_size", *batch);
  if (const Node* length = first_flag(reading, {"seq_length", "max_length"}))
    reading.parsed.set("training.sequence_length", *length);
  reading.parsed.set("training.lengths", Node::string("fixed"));
  if (reading.is_set("use_flash_attn") || reading.text("attention_backend") == "flash")
    reading.parsed.set("training.attention", Node::string("flash"));
  // Samples have the whole length with it and without it.
  reading.is_set("packing");
  if (reading.is_set("optimizer_cpu_offload"))
    reading.parsed.set("parallel.offload.optimizer", Node::string("cpu"));
  static constexpr auto kNotModelled = std::to_array<std::string_view>(
      {"offload_model", "offload_optimizer", "optimizer_offload_fraction",
       "use_precision_aware_optimizer", "use_vllm", "num_generations", "max_completion_length",
       "steps_per_generation", "teacher_model", "moe_expert_capacity_factor", "mtp_num_layers",
       "vit_gradient_checkpointing"});
  list_not_modelled(kNotModelled, reading.parsed);
  for (const char* key : {"hidden_dropout", "attention_dropout"}) {
    const Node* dropout = reading.flag(key);
    if (dropout != nullptr && dropout->is_number() && dropout->as_number() > 0)
      reading.leave_open(
          key, "memory",
          fmt::format("{}: the masks of {} {}", reading.file, key, dropout->shown()));
  }
  if (!reading.text("fp8_format").empty())
    reading.leave_open("fp8_format", "precision",
                       fmt::format("{}: fp8 copies of weights and inputs", reading.file));
}

}  // namespace

void read_megatron_command(CommandReading& reading) { read_known_flags(read, reading); }

}  // namespace memfathom

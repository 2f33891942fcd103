// ms-swift's arguments: a Trainer's under names of their own, adapters unless told otherwise.
#include <fmt/format.h>

#include <array>
#include <string>

#include "estimator/readers/default_optimizer.h"
#include "estimator/readers/formats.h"

namespace memfathom {
namespace {

constexpr auto kFields = std::to_array<Field>({
    {"training.batch_size", "per_device_train_batch_size"},
    {"training.batch_size", "micro_batch_size"},
    {"training.gradient_accumulation_steps", "gradient_accumulation_steps"},
    {"training.sequence_length", "max_length"},
    {"training.evaluation.batch_size", "per_device_eval_batch_size"},
    {"training.optimizer", "optim", FieldKind::kOptimizer},
    {"training.fused_loss", "use_liger_kernel", FieldKind::kFlag},
    {"parallel.tensor", "tensor_model_parallel_size"},
    {"parallel.pipeline", "pipeline_model_parallel_size"},
    {"parallel.limit_all_gathers", "fsdp_config.limit_all_gathers", FieldKind::kFlag},
    {"parallel.limit_all_gathers", "fsdp_config.fsdp_limit_all_gathers", FieldKind::kFlag},
});

constexpr auto kNotModelled = std::to_array<std::string_view>({
    "use_dora",
    "use_galore",
    "modules_to_save",
    "freeze_parameters",
    "freeze_parameters_ratio",
    "trainable_parameters",
    "torch_compile",
    "sequence_parallel_size",
    "context_parallel_size",
    "expert_model_parallel_size",
    "lisa_activated_layers",
    "fp8_format",
});

// The weights come in that type, and the Trainer's autocast has the same.
void set_precision(ParsedFile& parsed) {
  std::string type = text_at(parsed.content, "torch_dtype", "bfloat16");
  if (type.starts_with("torch.")) type.erase(0, 6);
  const bool half = type == "float16";
  if (type == "float32") {
    parsed.set("training.precision", Node::string("fp32"));
    return;
  }
  parsed.set("training.precision", Node::string(half ? "fp16" : "bf16"));
  parsed.set("training.autocast", Node::string(half ? "fp16" : "bf16"));
}

std::string tuner(const Node& tree) {
  for (const char* key : {"tuner_type", "train_type", "sft_type"}) {
    if (std::string kind = text_at(tree, key); !kind.empty()) return kind;
  }
  return "lora";
}

void set_adapters(ParsedFile& parsed) {
  const Node& tree = parsed.content;
  const std::string kind = tuner(tree);
  if (kind == "full") return;
  const Node* rank = value_at(tree, "lora_rank");
  parsed.set("training.lora.rank", rank != nullptr ? *rank : Node::integer(8));
  const Node* dropout = value_at(tree, "lora_dropout");
  parsed.set("training.lora.dropout", dropout != nullptr ? *dropout : Node::number(0.05));
  const Node* targets = value_at(tree, "target_modules");
  parsed.set("training.lora.targets",
             targets != nullptr ? lora_targets(*targets) : Node::string("all-linear"));
  if (kind != "lora")
    withhold("tuner_type", "adapters", fmt::format("{}: {} is counted as LoRA", parsed.file, kind),
             parsed);
}

void set_quantization(ParsedFile& parsed) {
  const Node* bits = value_at(parsed.content, "quant_bits");
  if (bits == nullptr || !bits->is_int() || bits->as_int() == 0) return;
  const std::string method = text_at(parsed.content, "quant_method", "bnb");
  const Node* twice = value_at(parsed.content, "bnb_4bit_use_double_quant");
  const bool once = twice != nullptr && !is_on(*twice);
  if (method == "bnb" && (bits->as_int() == 4 || bits->as_int() == 8)) {
    parsed.set("training.quantization", Node::string(bits->as_int() == 8 ? "int8"
                                                     : once              ? "nf4"
                                                                         : "nf4-double"));
  } else {
    leave_open("quant_bits", "precision",
               fmt::format("{}: {} with {} bits; the weights are counted whole", parsed.file,
                           method, bits->as_int()),
               parsed);
  }
}

// The trainers of preferences and of generated answers.
void set_method(ParsedFile& parsed) {
  const Node& tree = parsed.content;
  const std::string method = text_at(tree, "rlhf_type");
  if (method.empty()) return;
  const bool alone = method == "orpo" || method == "simpo" || method == "cpo" || method == "rm";
  if (method == "dpo" || alone) {
    parsed.set("training.preference.method", Node::string("dpo"));
    parsed.set("training.preference.reference",
               Node::string(alone                   ? "none"
                            : tuner(tree) == "full" ? "model"
                                                    : "disabled-adapter"));
    return;
  }
  leave_open("rlhf_type", "memory",
             fmt::format("{}: rlhf_type {}: a training step is counted, without generated answers, "
                         "servers and other models",
                         parsed.file, method),
             parsed);
}

// Megatron's kinds of recomputation, or the Trainer's flag, which is on unless it is said.
void set_checkpointing(ParsedFile& parsed) {
  const Node& tree = parsed.content;
  if (value_at(tree, "micro_batch_size") != nullptr) {
    const std::string kind = text_at(tree, "recompute_granularity", "selective");
    parsed.set("training.gradient_checkpointing",
               Node::string(kind == "full" || kind == "selective" ? kind : "none"));
    leave_open("micro_batch_size", "memory",
               fmt::format("{}: Megatron's buffers, fp32 gradients and distributed optimizer; a "
                           "Trainer's are counted",
                           parsed.file),
               parsed);
    return;
  }
  const Node* flag = value_at(tree, "gradient_checkpointing");
  if (flag != nullptr && !is_switch(*flag)) flag->refuse("it must be true or false");
  parsed.set("training.gradient_checkpointing",
             Node::string(flag == nullptr || is_on(*flag) ? "full" : "none"));
}

// Image towers and projectors stay frozen unless the file says otherwise.
void set_frozen(ParsedFile& parsed) {
  const Node& tree = parsed.content;
  const Node* tower = value_at(tree, "freeze_vit");
  const Node* aligner = value_at(tree, "freeze_aligner");
  const Node* language = value_at(tree, "freeze_llm");
  if (tower == nullptr && aligner == nullptr && language == nullptr) return;
  Node frozen = Node::list();
  if (tower == nullptr || is_on(*tower)) frozen.append(Node::string("vision_tower"));
  if (aligner == nullptr || is_on(*aligner)) frozen.append(Node::string("projector"));
  if (language != nullptr && is_on(*language)) frozen.append(Node::string("language_model"));
  parsed.set("training.freeze", std::move(frozen));
}

}  // namespace

std::span<const Field> ms_swift_fields() { return kFields; }

bool is_ms_swift(const Node& tree) {
  const auto has = [&](std::string_view key) { return value_at(tree, key) != nullptr; };
  const Node* model = value_at(tree, "model");
  if (model == nullptr || !model->is_string()) return false;
  return has("tuner_type") || has("train_type") || has("sft_type") || has("rlhf_type") ||
         (has("per_device_train_batch_size") && has("dataset"));
}

void read_ms_swift(ParsedFile& parsed) {
  const Node& tree = parsed.content;
  read_fields(kFields, parsed);
  set_packed({"packing"}, parsed);
  parsed.default_optimizer = trainer_default_optimizer();
  if (value_at(tree, "per_device_train_batch_size") == nullptr &&
      value_at(tree, "micro_batch_size") == nullptr) {
    parsed.set("training.batch_size", Node::integer(1));
    parsed.assumptions.push_back(fmt::format(
        "{} does not set per_device_train_batch_size; using ms-swift's default of 1", parsed.file));
  }
  set_precision(parsed);
  set_adapters(parsed);
  set_quantization(parsed);
  set_method(parsed);
  set_checkpointing(parsed);
  set_frozen(parsed);
  set_evaluation(parsed);
  if (std::string name = text_at(tree, "attn_impl", text_at(tree, "attention_backend"));
      !name.empty())
    set_attention(name, parsed);
  if (const Node* fsdp = value_at(tree, "fsdp")) set_fsdp(*fsdp, parsed);
  if (is_true_at(tree, "use_vllm") && text_at(tree, "vllm_mode", "server") == "colocate")
    leave_open("use_vllm", "memory",
               fmt::format("{}: vLLM on the same GPU is not counted", parsed.file), parsed);
  const Node* norm = value_at(tree, "max_grad_norm");
  parsed.set("training.gradient_clipping",
             Node::boolean(norm == nullptr || (norm->is_number() && norm->as_number() > 0)));
  parsed.base_model = text_at(tree, "model");
  list_not_modelled(kNotModelled, parsed);
}

}  // namespace memfathom

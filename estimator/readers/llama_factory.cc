#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string>

#include "core/error.h"
#include "estimator/readers/default_optimizer.h"
#include "estimator/readers/formats.h"

namespace memfathom {
namespace {

constexpr auto kFields = std::to_array<Field>({
    {"training.batch_size", "per_device_train_batch_size"},
    {"training.gradient_accumulation_steps", "gradient_accumulation_steps"},
    {"training.sequence_length", "cutoff_len"},
    {"training.optimizer", "optim", FieldKind::kOptimizer},
    {"training.evaluation.batch_size", "per_device_eval_batch_size"},
    {"training.lora.rank", "lora_rank"},
    {"training.lora.dropout", "lora_dropout"},
    {"training.fused_loss", "enable_liger_kernel", FieldKind::kFlag},
    {"parallel.tensor", "tensor_model_parallel_size"},
    {"parallel.pipeline", "pipeline_model_parallel_size"},
    {"parallel.limit_all_gathers", "fsdp_config.limit_all_gathers", FieldKind::kFlag},
    {"parallel.limit_all_gathers", "fsdp_config.fsdp_limit_all_gathers", FieldKind::kFlag},
});

constexpr auto kNotModelled = std::to_array<std::string_view>({
    "use_dora",
    "use_unsloth",
    "use_galore",
    "use_apollo",
    "use_badam",
    "additional_target",
    "use_adam_mini",
    "use_muon",
    "use_kt",
    "fp8",
    "shift_attn",
    "mixture_of_depths",
    "neat_packing",
    "torch_compile",
});

// "q_proj,v_proj", or "all": every linear layer but the head.
Node targets_of(const std::string& words) {
  Node targets = Node::list();
  std::size_t start = 0;
  while (start <= words.size()) {
    const std::size_t end = std::min(words.find(',', start), words.size());
    std::string word = words.substr(start, end - start);
    std::erase(word, ' ');
    if (!word.empty()) targets.append(Node::string(word == "all" ? "all-linear" : word));
    start = end + 1;
  }
  return targets;
}

// Frozen weights are in the type of the computation; trained ones are brought to fp32, unless the
// file asks for pure bf16, and computed under autocast.
void set_precision(bool adapters, ParsedFile& parsed) {
  const Node& tree = parsed.content;
  const bool pure = is_true_at(tree, "pure_bf16");
  const char* type = is_true_at(tree, "bf16") || pure ? "bf16"
                     : is_true_at(tree, "fp16")       ? "fp16"
                                                      : "";
  if (*type == '\0') return;
  if (adapters || pure) {
    parsed.set("training.precision", Node::string(type));
    if (!pure) parsed.set("training.autocast", Node::string(type));
  } else {
    parsed.set("training.precision", Node::string(fmt::format("amp-{}", type)));
  }
}

void set_bits(ParsedFile& parsed) {
  const Node& tree = parsed.content;
  const Node* bits = value_at(tree, "quantization_bit");
  if (bits == nullptr) return;
  const bool once =
      value_at(tree, "double_quantization") != nullptr && !is_true_at(tree, "double_quantization");
  switch (bits->as_int()) {
    case 4: parsed.set("training.quantization", Node::string(once ? "nf4" : "nf4-double")); break;
    case 8: parsed.set("training.quantization", Node::string("int8")); break;
    default:
      leave_open(
          "quantization_bit", "precision",
          fmt::format("{}: weights in {} bits are counted whole", parsed.file, bits->shown()),
          parsed);
  }
}

void set_adapters(ParsedFile& parsed) {
  const Node& tree = parsed.content;
  if (value_at(tree, "lora_rank") == nullptr) parsed.set("training.lora.rank", Node::integer(8));
  parsed.set("training.lora.targets", targets_of(text_at(tree, "lora_target", "all")));
  set_bits(parsed);
}

// Of a model that reads images: only its language model learns unless the file says otherwise.
// Pictures with more pixels than the file allows are made smaller.
void set_images(ParsedFile& parsed) {
  const Node& tree = parsed.content;
  const Node* pixels = value_at(tree, "image_max_pixels");
  const Node* tower = value_at(tree, "freeze_vision_tower");
  const Node* projector = value_at(tree, "freeze_multi_modal_projector");
  if (pixels == nullptr && tower == nullptr && projector == nullptr) return;
  Node frozen = Node::list();
  if (tower == nullptr || tower->as_bool()) frozen.append(Node::string("vision_tower"));
  if (projector == nullptr || projector->as_bool()) frozen.append(Node::string("projector"));
  if (is_true_at(tree, "freeze_language_model")) frozen.append(Node::string("language_model"));
  parsed.set("training.freeze", std::move(frozen));
  if (pixels == nullptr) return;
  const std::int64_t side =
      std::llround(std::floor(std::sqrt(static_cast<double>(pixels->as_int(1)))));
  parsed.set("training.image_size", Node::integer(side));
  parsed.assumptions.push_back(
      fmt::format("{}: pictures are taken to have the {} pixels of image_max_pixels: {} x {}",
                  parsed.file, pixels->as_int(), side, side));
}

void set_stage(bool adapters, ParsedFile& parsed) {
  const std::string stage = text_at(parsed.content, "stage", "sft");
  if (stage == "dpo") {
    const std::string loss = text_at(parsed.content, "pref_loss", "sigmoid");
    const bool alone = loss == "orpo" || loss == "simpo";
    parsed.set("training.preference.method", Node::string("dpo"));
    parsed.set("training.preference.reference", Node::string(alone      ? "none"
                                                             : adapters ? "disabled-adapter"
                                                                        : "model"));
  } else if (stage == "rm") {
    // The value head stands beside the language model's, whose logits are made too.
    parsed.set("training.preference.method", Node::string("dpo"));
    parsed.set("training.preference.reference", Node::string("none"));
    parsed.assumptions.push_back(
        fmt::format("{}: a reward model is counted with pairs of answers", parsed.file));
  } else if (stage != "sft" && stage != "pt") {
    leave_open("stage", "memory",
               fmt::format("{}: stage {} is counted as supervised training", parsed.file, stage),
               parsed);
  }
}

bool trains(const Node& tree) {
  return is_true_at(tree, "do_train") ||
         (!is_true_at(tree, "do_predict") && !is_true_at(tree, "do_eval") &&
          value_at(tree, "infer_backend") == nullptr && value_at(tree, "export_dir") == nullptr &&
          (value_at(tree, "finetuning_type") != nullptr ||
           value_at(tree, "cutoff_len") != nullptr));
}

// Adapters are merged into the weights before answers are generated.
void set_inference(ParsedFile& parsed) {
  const Node& tree = parsed.content;
  if (value_at(tree, "export_dir") != nullptr && text_at(tree, "export_device", "cpu") == "cpu" &&
      value_at(tree, "export_quantization_bit") == nullptr)
    throw Error(ErrorKind::kInput,
                fmt::format("{}: this file merges adapters on the CPU (export_device) and takes no "
                            "GPU memory; give a file that trains or infers",
                            parsed.file));
  const bool predicts = is_true_at(tree, "do_predict") || is_true_at(tree, "do_eval");
  const bool generates = !predicts || is_true_at(tree, "predict_with_generate");
  parsed.set("training.mode", Node::string(generates ? "generate" : "inference"));
  const Node* batch = value_at(tree, "per_device_eval_batch_size");
  constexpr std::int64_t kEvaluationBatch = 8;  // the Trainer's default
  parsed.set("training.batch_size",
             batch != nullptr ? *batch : Node::integer(predicts ? kEvaluationBatch : 1));
  constexpr std::int64_t kNewTokens = 1024;  // the library's default
  if (generates) {
    const Node* tokens = value_at(tree, "max_new_tokens");
    parsed.set("training.new_tokens", tokens != nullptr ? *tokens : Node::integer(kNewTokens));
  }
  constexpr std::int64_t kLength = 2048;  // the library's default
  const Node* length = value_at(tree, "cutoff_len");
  parsed.set("training.sequence_length", length != nullptr ? *length : Node::integer(kLength));
  parsed.set("training.precision", Node::string(is_true_at(tree, "fp16") ? "fp16" : "bf16"));
  parsed.assumptions.push_back(fmt::format(
      "{}: nothing is trained (do_predict, infer_backend or no training keys): {} in 16 bits with "
      "adapters merged{}",
      parsed.file, generates ? "generation" : "a forward pass",
      length == nullptr ? ", prompts of the library's 2048 tokens" : ""));
  const std::string backend = text_at(tree, "infer_backend", "huggingface");
  if (backend != "huggingface" && backend != "hf")
    leave_open("infer_backend", "memory",
               fmt::format("{}: {} reserves a share of the GPU for its cache; generation by "
                           "transformers is counted",
                           parsed.file, backend),
               parsed);
}

}  // namespace

bool is_llama_factory(const Node& tree) {
  const auto has = [&](std::string_view key) { return value_at(tree, key) != nullptr; };
  const bool is_named = has("model_name_or_path") || has("model");
  return has("finetuning_type") || has("cutoff_len") ||
         (is_named && (has("infer_backend") || has("export_dir") || has("peft_config.name"))) ||
         (has("model_name_or_path") && has("template"));
}

std::span<const Field> llama_factory_fields() { return kFields; }

bool write_to_llama_factory(const KeyChange& change, Node& content) {
  if (change.key == "training.gradient_checkpointing" && change.value.is_string()) {
    content.set("disable_gradient_checkpointing",
                Node::boolean(change.value.as_string() == "none"));
    return true;
  }
  if (change.key == "training.quantization") {
    const std::string& name = change.value.as_string();
    content.set("quantization_bit", Node::integer(name == "int8" ? 8 : 4));
    if (name != "int8") content.set("double_quantization", Node::boolean(name == "nf4-double"));
    return true;
  }
  if (change.key == "training.lora.rank") {
    content.set("finetuning_type", Node::string("lora"));
    content.set("lora_rank", change.value);
    return true;
  }
  if (change.key == "training.lora.targets" && change.value.is_list()) {
    std::string words;
    for (const Node& target : change.value.items())
      words += (words.empty() ? "" : ",") + target.as_string();
    content.set("lora_target", Node::string(words == "all-linear" ? "all" : words));
    return true;
  }
  if (change.key == "training.attention" && change.value.as_string() == "flash") {
    content.set("flash_attn", Node::string("fa2"));
    return true;
  }
  if (change.key == "training.precision" && change.value.as_string() == "bf16") {
    content.set("pure_bf16", Node::boolean(true));
    return true;
  }
  return write_to_training_arguments(change, content);
}

void set_last_layers(const Node* count, ParsedFile& parsed) {
  const std::int64_t layers = count != nullptr && count->is_int() ? count->as_int() : 2;
  if (layers > 0) {
    parsed.set("model.train.last", Node::integer(layers));
  } else {
    withhold("freeze_trainable_layers", "model",
             fmt::format("{}: only the first {} layers are trained; counted as if all were",
                         parsed.file, -layers),
             parsed);
  }
}

void read_llama_factory(ParsedFile& parsed) {
  const Node& tree = parsed.content;
  if (is_llama_factory_v1(tree)) {
    read_llama_factory_v1(parsed);
    return;
  }
  parsed.base_model = text_at(tree, "model_name_or_path", "");
  if (!trains(tree)) {
    set_inference(parsed);
    set_bits(parsed);
    return;
  }
  const std::string kind = text_at(tree, "finetuning_type", "lora");
  const bool adapters = kind == "lora" || kind == "oft";
  read_fields(kFields, parsed);
  set_packed({"packing", "neat_packing"}, parsed);
  parsed.default_optimizer = trainer_default_optimizer();
  if (adapters) {
    set_adapters(parsed);
  } else {
    std::erase_if(parsed.settings,
                  [](const KeyChange& change) { return change.key.starts_with("training.lora"); });
  }
  if (kind == "freeze") {
    set_last_layers(value_at(tree, "freeze_trainable_layers"), parsed);
  } else if (kind == "oft") {
    leave_open(
        "finetuning_type", "adapters",
        fmt::format("{}: orthogonal adapters (oft) are counted as LoRA of rank 8", parsed.file),
        parsed);
  } else if (kind != "lora" && kind != "full") {
    leave_open("finetuning_type", "adapters",
               fmt::format("{}: finetuning_type {} is counted as full training", parsed.file, kind),
               parsed);
  }
  if (value_at(tree, "per_device_train_batch_size") == nullptr) {
    parsed.set("training.batch_size", Node::integer(8));
    parsed.assumptions.push_back(
        fmt::format("{} does not set per_device_train_batch_size; using the library's default of 8",
                    parsed.file));
  }
  if (value_at(tree, "cutoff_len") == nullptr) {
    parsed.set("training.sequence_length", Node::integer(2048));
    parsed.assumptions.push_back(fmt::format(
        "{} does not set cutoff_len; using the library's default of 2048", parsed.file));
  }
  // On, unless it is switched off by name; the Trainer's own switch is overruled.
  value_at(tree, "gradient_checkpointing");
  parsed.set("training.gradient_checkpointing",
             Node::string(is_true_at(tree, "disable_gradient_checkpointing") ? "none" : "full"));
  set_precision(adapters, parsed);
  set_stage(adapters, parsed);
  set_evaluation(parsed);
  set_images(parsed);
  const std::string attention = text_at(tree, "flash_attn", "auto");
  if (attention == "fa2") parsed.set("training.attention", Node::string("flash"));
  if (attention == "sdpa") parsed.set("training.attention", Node::string("sdpa"));
  if (attention == "disabled") parsed.set("training.attention", Node::string("eager"));
  const Node* norm = value_at(tree, "max_grad_norm");
  parsed.set("training.gradient_clipping",
             Node::boolean(norm == nullptr || (norm->is_number() && norm->as_number() > 0)));
  if (const Node* fsdp = value_at(tree, "fsdp")) set_fsdp(*fsdp, parsed);
  list_not_modelled(kNotModelled, parsed);
}

}  // namespace memfathom

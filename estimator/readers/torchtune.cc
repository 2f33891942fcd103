// torchtune's recipes: components by the dotted names of their builders, weights and adapters in
// one type, no autocast.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <string>
#include <system_error>

#include "core/lowercase.h"
#include "estimator/models/presets.h"
#include "estimator/readers/formats.h"

namespace memfathom {
namespace {

constexpr auto kFields = std::to_array<Field>({
    {"training.batch_size", "batch_size"},
    {"training.gradient_accumulation_steps", "gradient_accumulation_steps"},
    {"training.sequence_length", "tokenizer.max_seq_len"},
    {"training.gradient_checkpointing", "enable_activation_checkpointing",
     FieldKind::kCheckpointing},
    {"parallel.offload.activations", "enable_activation_offloading", FieldKind::kOffload},
    {"parallel.offload.parameters", "fsdp_cpu_offload", FieldKind::kOffload},
    {"parallel.tensor", "tensor_parallel_dim"},
    {"training.lora.rank", "model.lora_rank"},
    {"training.lora.dropout", "model.lora_dropout"},
});

constexpr auto kNotModelled = std::to_array<std::string_view>({
    "optimizer_in_bwd",
    "compile",
    "model.use_dora",
    "model.apply_lora_to_output",
    "tensor_parallel_plan",
    "context_parallel_dim",
});

// "lora_llama3_1_8b" of "torchtune.models.llama3_1.lora_llama3_1_8b".
std::string component(const Node& tree, std::string_view section) {
  const std::string name = text_at(tree, fmt::format("{}._component_", section));
  return name.substr(name.rfind('.') + 1);
}

// "llama3-1-8b": the builder's name in the way presets are written, without its kind of training.
std::string model_of(std::string builder) {
  for (const std::string_view kind : {"qlora_", "lora_"}) {
    if (builder.starts_with(kind)) builder.erase(0, kind.size());
  }
  std::replace(builder.begin(), builder.end(), '_', '-');
  for (const std::string_view ending : {"-instruct", "-base"}) {
    if (builder.ends_with(ending)) builder.erase(builder.size() - ending.size());
  }
  return builder;
}

// The builder names a model; where no preset is called so, the folder of its weights describes it.
std::string base_model(const Node& tree) {
  std::string name = component(tree, "model");
  if (name.empty()) name = component(tree, "policy_model");
  name = model_of(std::move(name));
  const std::string folder = text_at(tree, "checkpointer.checkpoint_dir");
  std::error_code unreadable;
  const bool is_here = !folder.empty() && std::filesystem::exists(folder, unreadable);
  return !is_preset(name) && is_here ? folder : name;
}

void set_precision(ParsedFile& parsed) {
  const std::string type = text_at(parsed.content, "dtype", "bf16");
  if (type != "bf16" && type != "fp16" && type != "fp32") return;
  parsed.set("training.precision", Node::string(type));
  const auto adapts = [](const KeyChange& change) { return change.key == "training.lora.rank"; };
  if (std::any_of(parsed.settings.begin(), parsed.settings.end(), adapts))
    parsed.set("training.lora.precision", Node::string(type));
}

void set_adapters(ParsedFile& parsed) {
  const Node& tree = parsed.content;
  Node targets = Node::list();
  if (const Node* modules = value_at(tree, "model.lora_attn_modules");
      modules != nullptr && modules->is_list()) {
    for (const Node& name : modules->items())
      targets.append(name.is_string() && name.as_string() == "output_proj" ? Node::string("o_proj")
                                                                           : name);
  }
  if (is_true_at(tree, "model.apply_lora_to_mlp")) {
    for (const char* name : {"gate_proj", "down_proj", "up_proj"})
      targets.append(Node::string(name));
  }
  if (!targets.items().empty()) parsed.set("training.lora.targets", std::move(targets));
  if (component(tree, "model").starts_with("qlora_") || is_true_at(tree, "model.quantize_base"))
    parsed.set("training.quantization", Node::string("nf4-double"));
}

void set_optimizer(ParsedFile& parsed) {
  std::string name = lowercase(component(parsed.content, "optimizer"));
  if (name.empty()) return;
  if (name.starts_with("paged")) {
    name.erase(0, 5);
    parsed.not_modelled.emplace_back(
        "paged optimizer states are counted as if they stayed on the GPU");
  }
  if (name == "adamw8bit" || name == "adam8bit") name = "adamw-8bit";
  static constexpr std::array<std::string_view, 6> kKnown{"adamw", "adam",    "adamw-8bit",
                                                          "sgd",   "adagrad", "rmsprop"};
  if (std::find(kKnown.begin(), kKnown.end(), name) == kKnown.end()) {
    leave_open("optimizer._component_", "optimizer",
               fmt::format("{}: the states of the optimizer {}; they are counted as AdamW's",
                           parsed.file, name),
               parsed);
    name = "adamw";
  }
  Node optimizer = Node::string(name);
  if (is_true_at(parsed.content, "optimizer.fused")) {
    optimizer = Node::map();
    optimizer.set("name", Node::string(name));
    optimizer.set("implementation", Node::string("fused"));
  }
  parsed.set("training.optimizer", std::move(optimizer));
}

void set_loss(bool adapters, ParsedFile& parsed) {
  const std::string loss = component(parsed.content, "loss");
  if (loss.starts_with("DPO")) {
    parsed.set("training.preference.method", Node::string("dpo"));
    parsed.set("training.preference.reference",
               Node::string(adapters ? "disabled-adapter" : "model"));
  } else if (loss == "LinearCrossEntropyLoss" || loss == "CEWithChunkedOutputLoss") {
    parsed.not_modelled.push_back(fmt::format(
        "{}: {} makes the logits in pieces; whole ones are counted", parsed.file, loss));
  }
}

// The recipes that only run a model have no optimizer: they generate an answer to one prompt, or
// score the tasks of an evaluation.
void set_inference(ParsedFile& parsed) {
  const Node& tree = parsed.content;
  drop_settings("training.lora", parsed);
  const auto said = [&](std::initializer_list<const char*> keys) -> const Node* {
    for (const char* key : keys) {
      const Node* value = value_at(tree, key);
      if (value != nullptr && value->is_int()) return value;
    }
    return nullptr;
  };
  const Node* new_tokens = said({"max_new_tokens", "max_generated_tokens"});
  const bool generates = new_tokens != nullptr || value_at(tree, "prompt") != nullptr;
  parsed.set("training.mode", Node::string(generates ? "generate" : "inference"));
  if (generates) {
    parsed.set("training.new_tokens", new_tokens != nullptr ? *new_tokens : Node::integer(300));
    // A prompt of a sentence or two; a file with an image says more.
    constexpr std::int64_t kPromptTokens = 128;
    drop_settings("training.sequence_length", parsed);
    parsed.set("training.sequence_length", Node::integer(kPromptTokens));
    parsed.assumptions.push_back(
        fmt::format("{}: the prompt is taken to have {} tokens", parsed.file, kPromptTokens));
  } else if (const Node* length = said({"max_seq_length"})) {
    drop_settings("training.sequence_length", parsed);
    parsed.set("training.sequence_length", *length);
  }
  if (is_true_at(tree, "enable_kv_cache") && generates)
    parsed.set("training.kv_cache", Node::string("static"));
  if (const Node* quantizer = value_at(tree, "quantizer"); quantizer != nullptr)
    leave_open("quantizer", "precision",
               fmt::format("{}: weights that {} makes; they are counted in {}", parsed.file,
                           component(tree, "quantizer"), text_at(tree, "dtype", "bf16")),
               parsed);
}

// The other models of reinforcement learning and of distillation are of sizes of their own.
void list_other_models(ParsedFile& parsed) {
  for (const char* key : {"teacher_model", "reward_and_value_model", "grpo_samples"}) {
    leave_open(key, "model",
               fmt::format("{}: \"{}\": what it adds to the trained model is not counted",
                           parsed.file, key),
               parsed);
  }
}

}  // namespace

bool is_torchtune(const Node& tree) {
  return text_at(tree, "model._component_").find("torchtune") != std::string::npos ||
         text_at(tree, "policy_model._component_").find("torchtune") != std::string::npos;
}

std::span<const Field> torchtune_fields() { return kFields; }

void read_torchtune(ParsedFile& parsed) {
  const Node& tree = parsed.content;
  read_fields(kFields, parsed);
  set_packed({"dataset.packed"}, parsed);
  const bool adapters = value_at(tree, "model.lora_rank") != nullptr;
  if (adapters) set_adapters(parsed);
  set_precision(parsed);
  const bool trains = value_at(tree, "optimizer") != nullptr || value_at(tree, "loss") != nullptr ||
                      value_at(tree, "training") != nullptr;
  if (trains) {
    set_optimizer(parsed);
    set_loss(adapters, parsed);
    leave_open("quantizer", "precision",
               fmt::format("{}: training that makes weights in few bits (quantizer); its rounded "
                           "copies are not counted",
                           parsed.file),
               parsed);
  } else {
    set_inference(parsed);
  }
  list_other_models(parsed);
  parsed.set("training.checkpoint_reentrant", Node::boolean(false));
  if (const Node* norm = value_at(tree, "clip_grad_norm"); norm != nullptr && norm->is_number())
    parsed.set("training.gradient_clipping", Node::boolean(norm->as_number() > 0));
  parsed.base_model = base_model(tree);
  list_not_modelled(kNotModelled, parsed);
}

}  // namespace memfathom

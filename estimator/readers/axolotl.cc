#include <fmt/format.h>

#include <array>
#include <string>

#include "core/lowercase.h"
#include "estimator/readers/default_optimizer.h"
#include "estimator/readers/formats.h"

namespace memfathom {
namespace {

constexpr auto kFields = std::to_array<Field>({
    {"training.batch_size", "micro_batch_size"},
    {"training.gradient_accumulation_steps", "gradient_accumulation_steps"},
    {"training.sequence_length", "sequence_len"},
    {"training.evaluation.batch_size", "eval_batch_size"},
    {"training.gradient_checkpointing", "gradient_checkpointing", FieldKind::kCheckpointing},
    {"training.optimizer", "optimizer", FieldKind::kOptimizer},
    {"training.attention", "flash_attention", FieldKind::kFlash},
    {"training.lora.rank", "lora_r"},
    {"training.lora.dropout", "lora_dropout"},
    {"training.lora.targets", "lora_target_modules"},
    {"training.fused_loss", "liger_fused_linear_cross_entropy", FieldKind::kFlag},
    {"parallel.offload.activations", "activation_offloading", FieldKind::kOffload},
    {"parallel.limit_all_gathers", "fsdp_config.limit_all_gathers", FieldKind::kFlag},
    {"parallel.limit_all_gathers", "fsdp_config.fsdp_limit_all_gathers", FieldKind::kFlag},
});

constexpr auto kNotModelled = std::to_array<std::string_view>({
    "relora_steps",
    "lora_modules_to_save",
    "peft_use_dora",
    "torch_compile",
    "unfrozen_parameters",
    "galore_rank",
    "context_parallel_size",
    "sequence_parallel_degree",
    "xformers_attention",
    "s2_attention",
    "qat",
    "quantize_moe_experts",
    "lora_target_parameters",
});

// bf16 and fp16 load the weights in that type and compute under autocast; bfloat16 and float16 do
// without the latter.
void set_precision(ParsedFile& parsed) {
  const Node& tree = parsed.content;
  const Node* bf16 = value_at(tree, "bf16");
  const std::string word = bf16 != nullptr && bf16->is_string() ? bf16->as_string() : "false";
  const auto set = [&](const char* type, bool autocast) {
    parsed.set("training.precision", Node::string(type));
    if (autocast) parsed.set("training.autocast", Node::string(type));
  };
  if (is_true_at(tree, "bf16") || word != "false") {
    set("bf16", word != "full");
  } else if (is_true_at(tree, "fp16")) {
    set("fp16", true);
  } else if (is_true_at(tree, "bfloat16")) {
    set("bf16", false);
  } else if (is_true_at(tree, "float16")) {
    set("fp16", false);
  } else if (is_true_at(tree, "fp8")) {
    parsed.set("training.precision", Node::string("amp-bf16"));
  }
  if (word == "auto")
    parsed.assumptions.push_back(
        fmt::format("{}: bf16: auto is bf16, which GPUs from Ampere on compute in", parsed.file));
  if (const Node* fp8 = value_at(tree, "fp8"); fp8 != nullptr && is_on(*fp8))
    leave_open("fp8", "precision",
               fmt::format("{}: fp8: products in 8 bits are counted as bf16's; the 8-bit copies of "
                           "weights and inputs are not",
                           parsed.file),
               parsed);
}

// NVIDIA's 4-bit weights, by the name of the checkpoint or the keys of their kernels.
void list_nvfp4(ParsedFile& parsed) {
  for (const char* key : {"base_model", "nvfp4_merge_aware", "dsv4_fp4_grouped_mode"}) {
    const Node* value = value_at(parsed.content, key);
    if (value == nullptr || !is_on(*value)) continue;
    const std::string name = value->is_string() ? lowercase(value->as_string()) : "nvfp4";
    if (name.find("nvfp4") == std::string::npos) continue;
    leave_open(key, "precision",
               fmt::format("{}: weights in NVFP4 ({}) are counted in the type of the computation",
                           parsed.file, key),
               parsed);
    return;
  }
}

void set_quantization(const std::string& adapter, ParsedFile& parsed) {
  const Node& tree = parsed.content;
  if (is_true_at(tree, "load_in_4bit") || adapter == "qlora") {
    // Twice quantized, unless the file says otherwise.
    const Node* twice = value_at(tree, "bnb_config_kwargs.bnb_4bit_use_double_quant");
    const bool once = twice != nullptr && !twice->as_bool();
    parsed.set("training.quantization", Node::string(once ? "nf4" : "nf4-double"));
  } else if (is_true_at(tree, "load_in_8bit")) {
    parsed.set("training.quantization", Node::string("int8"));
  }
}

// Losses that never hold the logits: Liger's, Apple's, and axolotl's own in pieces.
bool has_fused_loss(const Node& tree) {
  for (const char* key : {"cut_cross_entropy", "chunked_cross_entropy"}) {
    if (is_true_at(tree, key)) return true;
  }
  const Node* plugins = value_at(tree, "plugins");
  if (plugins == nullptr || !plugins->is_list()) return false;
  const Node* cut = value_at(tree, "cut_cross_entropy");
  if (cut != nullptr && cut->is_bool() && !cut->as_bool()) return false;
  for (const Node& plugin : plugins->items()) {
    if (plugin.is_string() && plugin.as_string().find("CutCrossEntropy") != std::string::npos)
      return true;
  }
  return false;
}

// The mesh that a file describes: as many GPUs as its sides multiply to.
void set_gpus(ParsedFile& parsed) {
  std::int64_t gpus = 1;
  bool said = false;
  for (const char* key : {"dp_shard_size", "dp_replicate_size", "tensor_parallel_size",
                          "context_parallel_size", "expert_parallel_size"}) {
    const Node* side = value_at(parsed.content, key);
    if (side == nullptr || !side->is_number()) continue;
    gpus *= side->as_int(1, 4096);
    said = said || side->as_int() > 1;
  }
  if (!said) return;
  parsed.set("parallel.num_gpus", Node::integer(gpus));
  const Node* replicas = value_at(parsed.content, "dp_replicate_size");
  const Node* shards = value_at(parsed.content, "dp_shard_size");
  const bool shards_copies = replicas != nullptr && replicas->is_int() && replicas->as_int() > 1 &&
                             shards != nullptr && shards->is_int() && shards->as_int() > 1;
  if (shards_copies) set_hybrid_fsdp(shards->as_int(), parsed);
  if (const Node* experts = value_at(parsed.content, "expert_parallel_size");
      experts != nullptr && experts->is_number() && experts->as_int() > 1)
    leave_open("expert_parallel_size", "sharding",
               fmt::format("{}: expert parallelism over {} GPUs; every GPU is counted with all "
                           "experts that its sharding leaves it",
                           parsed.file, experts->as_int()),
               parsed);
  const Node* tensor = value_at(parsed.content, "tensor_parallel_size");
  if (tensor != nullptr && tensor->is_number() && tensor->as_int() > 1)
    parsed.set("parallel.tensor", *tensor);
}

// Something is held out, by share or by name.
bool evaluates(const Node& tree) {
  const Node* share = value_at(tree, "val_set_size");
  return (share != nullptr && share->is_number() && share->unchecked_number() > 0) ||
         value_at(tree, "test_datasets") != nullptr;
}

void apply_precision(const std::string& name, const Node& job, Node& content) {
  const bool autocast = value_at(job, "training.autocast") != nullptr;
  const std::array<std::pair<const char*, bool>, 4> flags{{
      {"bf16", autocast && name == "bf16"},
      {"fp16", autocast && name == "fp16"},
      {"bfloat16", !autocast && name == "bf16"},
      {"float16", !autocast && name == "fp16"},
  }};
  for (const auto& [key, on] : flags) {
    if (on || value_at(content, key) != nullptr) content.set(key, Node::boolean(on));
  }
}

void apply_quantization(const std::string& name, Node& content) {
  content.set("load_in_8bit", Node::boolean(name == "int8"));
  content.set("load_in_4bit", Node::boolean(name.starts_with("nf4")));
  content.set("adapter", Node::string(name.starts_with("nf4") ? "qlora" : "lora"));
  if (name == "nf4")
    content.assign("bnb_config_kwargs.bnb_4bit_use_double_quant", Node::boolean(false));
}

// The rank of an adapter that is switched off means nothing.
void set_adapter(const std::string& kind, ParsedFile& parsed) {
  const Node& tree = parsed.content;
  if (kind.empty())
    std::erase_if(parsed.settings,
                  [](const KeyChange& change) { return change.key.starts_with("training.lora"); });
  if (!kind.empty() && kind != "lora" && kind != "qlora")
    leave_open("adapter", "adapters",
               fmt::format("{}: adapter {} is counted as LoRA", parsed.file, kind), parsed);
  if (!kind.empty() && value_at(tree, "lora_r") == nullptr)
    parsed.set("training.lora.rank", Node::integer(8));
  if (is_true_at(tree, "lora_target_linear")) {
    Node targets = Node::list();
    for (const char* target :
         {"q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"})
      targets.append(Node::string(target));
    std::erase_if(parsed.settings,
                  [](const KeyChange& change) { return change.key == "training.lora.targets"; });
    if (!kind.empty()) parsed.set("training.lora.targets", std::move(targets));
  }
  for (KeyChange& change : parsed.settings) {
    if (change.key == "training.lora.targets") change.value = lora_targets(change.value);
  }
}

void set_attention_and_memory(ParsedFile& parsed) {
  const Node& tree = parsed.content;
  if (const std::string name = text_at(tree, "attn_implementation"); !name.empty())
    set_attention(name, parsed);
  if (has_fused_loss(tree)) parsed.set("training.fused_loss", Node::boolean(true));
  // "offload" is both: segments, and what they keep on the host.
  if (text_at(tree, "gradient_checkpointing").starts_with("offload"))
    parsed.set("parallel.offload.activations", Node::string("cpu"));
  if (is_true_at(tree, "eager_attention")) parsed.set("training.attention", Node::string("eager"));
  if (is_true_at(tree, "sdp_attention")) parsed.set("training.attention", Node::string("sdpa"));
}

// Strategies of FSDP that keep gathered weights take more than full sharding.
void list_partial_sharding(ParsedFile& parsed) {
  const Node& tree = parsed.content;
  for (const char* key :
       {"fsdp_config.sharding_strategy", "fsdp_config.fsdp_sharding_strategy",
        "fsdp_config.reshard_after_forward", "fsdp_config.fsdp_reshard_after_forward"}) {
    const Node* value = value_at(tree, key);
    if (value == nullptr || (value->is_bool() && value->as_bool()) ||
        (value->is_string() && value->as_string() == "FULL_SHARD"))
      continue;
    leave_open(key, "sharding",
               fmt::format("{}: {} is {}; FULL_SHARD is counted", parsed.file, key, value->shown()),
               parsed);
  }
}

void set_sharding(ParsedFile& parsed) {
  const Node& tree = parsed.content;
  list_partial_sharding(parsed);
  if (const Node* fsdp = value_at(tree, "fsdp")) set_fsdp(*fsdp, parsed);
  // Since its second version a section is enough to turn FSDP on.
  if (const Node* section = value_at(tree, "fsdp_config");
      section != nullptr && section->is_map() && value_at(tree, "fsdp") == nullptr)
    parsed.set("parallel.fsdp", Node::string("full"));
  const Node* version = value_at(tree, "fsdp_version");
  if (version == nullptr) version = value_at(tree, "fsdp_config.fsdp_version");
  if (version != nullptr) parsed.set("parallel.fsdp_version", *version);
  if (is_true_at(tree, "fsdp_config.activation_checkpointing") ||
      is_true_at(tree, "fsdp_config.fsdp_activation_checkpointing"))
    parsed.set("training.gradient_checkpointing", Node::string("full"));
  set_gpus(parsed);
  for (const char* key : {"fsdp_config.offload_params", "fsdp_config.fsdp_offload_params"}) {
    if (is_true_at(tree, key)) parsed.set("parallel.offload.parameters", Node::string("cpu"));
  }
}

// A classifier of pairs of answers, or of the tokens that end a step; neither has logits over the
// vocabulary.
void set_reward_model(ParsedFile& parsed) {
  const bool pairs = is_true_at(parsed.content, "reward_model");
  if (!pairs && !is_true_at(parsed.content, "process_reward_model")) return;
  // Both answers of a pair pass the network as one batch.
  if (pairs) {
    const Node* size = value_at(parsed.content, "micro_batch_size");
    const std::int64_t pair_count = size != nullptr ? size->as_int(1, 1 << 20) : 1;
    drop_settings("training.batch_size", parsed);
    parsed.set("training.batch_size", Node::integer(2 * pair_count));
  }
  drop_settings("training.fused_loss", parsed);
  parsed.set("training.fused_loss", Node::boolean(true));
  parsed.assumptions.push_back(
      fmt::format("{}: a reward model is counted with {} and without logits over the vocabulary",
                  parsed.file, pairs ? "pairs of answers" : "single answers"));
}

void set_preference(bool adapters, ParsedFile& parsed) {
  set_reward_model(parsed);
  const Node* rl = value_at(parsed.content, "rl");
  if (rl == nullptr || !rl->is_string()) return;
  const std::string& method = rl->as_string();
  const bool alone = method == "orpo" || method == "simpo";
  if (method == "dpo" || method == "ipo" || alone) {
    parsed.set("training.preference.method", Node::string("dpo"));
    // axolotl loads a model for the reference only without adapters, unless it is told to.
    const bool loads_another = is_true_at(parsed.content, "rl_adapter_ref_model");
    const bool own = adapters && !loads_another;
    if (alone || own)
      parsed.set("training.preference.reference",
                 Node::string(alone ? "none" : "disabled-adapter"));
  } else {
    leave_open("rl", "memory",
               fmt::format("{}: rl {}; supervised training is counted", parsed.file, method),
               parsed);
  }
}

}  // namespace

std::span<const Field> axolotl_fields() { return kFields; }

bool write_to_axolotl(const KeyChange& change, const Node& job, Node& content) {
  if (change.key == "training.precision" && !change.value.as_string().starts_with("amp-")) {
    apply_precision(change.value.as_string(), job, content);
    return true;
  }
  if (change.key == "training.quantization") {
    apply_quantization(change.value.as_string(), content);
    return true;
  }
  if (change.key == "training.lora.rank") {
    // An adapter needs its kind and its targets beside the rank.
    if (value_at(content, "adapter") == nullptr) content.set("adapter", Node::string("lora"));
    if (value_at(content, "lora_target_modules") == nullptr &&
        !is_true_at(content, "lora_target_linear")) {
      Node targets = Node::list();
      for (const char* target : {"q_proj", "v_proj"}) targets.append(Node::string(target));
      content.set("lora_target_modules", std::move(targets));
    }
    content.set("lora_r", change.value);
    return true;
  }
  if (change.key == "training.attention" && change.value.as_string() == "flash") {
    for (const char* other : {"sdp_attention", "eager_attention"}) content.erase(other);
    content.set("flash_attention", Node::boolean(true));
    return true;
  }
  if (change.key == "parallel.zero_stage" && value_at(content, "deepspeed") == nullptr) {
    content.set("deepspeed", zero_section(change.value));
    return true;
  }
  if (change.key == "parallel.fsdp" && change.value.is_string()) {
    Node words = Node::list();
    words.append(
        Node::string(change.value.as_string() == "hybrid" ? "hybrid_shard" : "full_shard"));
    words.append(Node::string("auto_wrap"));
    content.set("fsdp", std::move(words));
    return true;
  }
  return false;
}

void read_axolotl(ParsedFile& parsed) {
  const Node& tree = parsed.content;
  const Node* adapter = value_at(tree, "adapter");
  const std::string kind = adapter != nullptr && adapter->is_string() ? adapter->as_string() : "";
  read_fields(kFields, parsed);
  parsed.default_optimizer = fused_adamw();
  set_packed({"sample_packing", "pad_to_sequence_len"}, parsed);
  if (!evaluates(tree))
    std::erase_if(parsed.settings, [](const KeyChange& change) {
      return change.key == "training.evaluation.batch_size";
    });
  set_adapter(kind, parsed);
  set_quantization(kind, parsed);
  set_precision(parsed);
  set_attention_and_memory(parsed);
  list_nvfp4(parsed);
  set_sharding(parsed);
  set_preference(kind == "lora" || kind == "qlora", parsed);
  if (const Node* base = value_at(tree, "base_model"); base != nullptr && base->is_string())
    parsed.base_model = base->as_string();
  list_not_modelled(kNotModelled, parsed);
}

}  // namespace memfathom

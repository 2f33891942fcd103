#include <algorithm>
#include <array>
#include <string_view>

#include "core/error.h"
#include "estimator/job/read_job.h"
#include "estimator/models/losses.h"

namespace memfathom {
namespace {

constexpr std::int64_t kMost = std::int64_t{1} << 40;
constexpr std::int64_t kMostNewTokens = 1 << 20;  // every one of them is replayed
constexpr std::int64_t kMostImages = 10'000;

// Parts of a model that reads pictures which do not learn.
FrozenParts read_frozen(const Node& node) {
  FrozenParts frozen;
  bool* const parts[] = {&frozen.vision, &frozen.projector, &frozen.language};
  for (const Node& part : node.items())
    *parts[part.as_choice({"vision_tower", "projector", "language_model"})] = true;
  return frozen;
}

void read_image_size(const Node& node, ModelSettings& settings) {
  if (node.is_list()) {
    const std::vector<std::int64_t> size = node.as_ints(1, kMost);
    if (size.size() != 2) node.refuse("it must be one number or [height, width]");
    settings.image_height = size[0];
    settings.image_width = size[1];
  } else {
    settings.image_height = settings.image_width = node.as_int(1, kMost);
  }
}

OptimizerName optimizer_name(const Node& node) {
  const std::optional<OptimizerName> known = parse_optimizer(node.as_string());
  if (known) return *known;
  static constexpr std::array<std::string_view, 10> kNames{
      "none",       "sgd",       "sgd-momentum", "adam",    "adamw",
      "adamw-8bit", "adafactor", "lion",         "rmsprop", "adagrad"};
  node.as_choice(kNames);  // says which was meant
  return OptimizerName::kNone;
}

void read_optimizer(const Node& node, TrainingSpec& training) {
  OptimizerOptions& optimizer = training.optimizer;
  const Node& name = node.is_map() ? node.at("name") : node;
  training.paged_optimizer = name.is_string() && name.as_string().starts_with("paged");
  if (!node.is_map()) {
    optimizer.name = optimizer_name(node);
    return;
  }
  node.check_keys({"name", "implementation", "state_precision", "master_weights", "weight_decay"});
  optimizer.name = optimizer_name(node.at("name"));
  if (const Node* form = node.find("implementation")) {
    const std::optional<OptimizerForm> known = parse_optimizer_form(form->as_string());
    if (!known) form->as_choice({"foreach", "fused", "for-loop"});
    optimizer.form = *known;
    training.optimizer_form_given = true;
  }
  if (const Node* precision = node.find("state_precision");
      precision != nullptr && !precision->is_null()) {
    optimizer.state_precision = precision->as_dtype();
  }
  if (const Node* master = node.find("master_weights"))
    optimizer.master_weights = master->as_bool();
  if (const Node* decay = node.find("weight_decay"))
    optimizer.weight_decay = decay->as_number(0, 1e6);
}

// A word, or of weights that were stored quantised {method, bits, group_size, not_converted}.
void read_quantization(const Node& node, TrainingSpec& training) {
  const auto kind = [](const Node& word) {
    return static_cast<Quantization>(
        word.as_choice({"none", "int8", "nf4", "nf4-double", "gptq", "awq", "fp8", "mxfp4"}));
  };
  if (!node.is_map()) {
    training.quantization = kind(node);
    return;
  }
  node.check_keys({"method", "bits", "group_size", "not_converted"});
  training.quantization = kind(node.at("method"));
  if (const Node* bits = node.find("bits")) training.packed.bits = bits->as_int(2, 8);
  if (const Node* group = node.find("group_size"))
    training.packed.group = std::max<std::int64_t>(0, group->as_int(-1, kMost));
  if (const Node* names = node.find("not_converted")) {
    for (const Node& name : names->items())
      training.packed.not_converted.push_back(name.as_string());
  }
}

void read_lora(const Node& node, TrainingSpec& training) {
  if (node.is_null()) return;
  node.check_keys({"rank", "targets", "dropout", "precision"});
  LoraOptions lora;
  lora.rank = node.at("rank").as_int(1, kMost);
  if (const Node* targets = node.find("targets")) {
    if (targets->is_string()) {
      lora.targets.push_back(targets->as_string());
    } else {
      for (const Node& target : targets->items()) lora.targets.push_back(target.as_string());
    }
  } else {
    lora.targets = {"q_proj", "v_proj"};
  }
  if (const Node* p = node.find("dropout")) {
    lora.dropout = p->as_number(0, 1);
    training.lora_dropout_given = true;
  }
  if (const Node* precision = node.find("precision");
      precision != nullptr && !precision->is_null()) {
    lora.precision = precision->as_dtype();
    training.lora_precision_given = true;
  }
  training.lora = lora;
}

void read_checkpointing(const Node& node, ModelSettings& settings) {
  if (node.is_bool()) {
    settings.checkpointing = node.as_bool() ? Checkpointing::kFull : Checkpointing::kNone;
  } else {
    settings.checkpointing =
        static_cast<Checkpointing>(node.as_choice({"none", "full", "selective"}));
  }
}

void read_preference(const Node& node, TrainingSpec& training) {
  if (node.is_null()) return;
  const Node* method = node.is_string() ? &node : &node.at("method");
  if (method->as_choice({"none", "dpo"}) == 0) return;
  training.preference = true;
  training.reference = Reference::kModel;
  if (!node.is_map()) return;
  node.check_keys({"method", "reference"});
  if (const Node* reference = node.find("reference")) {
    training.reference = static_cast<Reference>(
        reference->as_choice({"none", "precomputed", "model", "disabled-adapter"}));
  }
}

// true: with the batches of training.
void read_evaluation(const Node& node, TrainingSpec& training) {
  if (node.is_bool()) {
    training.evaluation_batch = node.as_bool() ? training.batch_size : 0;
    return;
  }
  node.check_keys({"batch_size"});
  training.evaluation_batch = node.at("batch_size").as_int(1, kMost);
}

bool given(const Node* node) { return node != nullptr && !node->is_null(); }

}  // namespace

Precision read_precision(const Node& node) {
  static constexpr std::array<std::string_view, 9> kNames{
      "fp32", "bf16", "fp16", "amp-bf16", "amp-fp16", "float32", "bfloat16", "float16", "fp64"};
  const std::string_view text = node.is_string() ? node.as_string() : std::string_view();
  if (text.starts_with("int") || text.ends_with("bit") || text.starts_with("nf4")) {
    node.refuse(
        "that is how weights are stored: write training.quantization (int8, nf4) or "
        "--load-in-8bit, --load-in-4bit, and the type that computes here");
  }
  Precision precision;
  switch (node.as_choice(kNames)) {
    case 1:
    case 6: precision.parameters = DType::kBf16; break;
    case 2:
    case 7: precision.parameters = DType::kFp16; break;
    case 3: precision.autocast = DType::kBf16; break;
    case 4: precision.autocast = DType::kFp16; break;
    case 8: precision.parameters = DType::kFp64; break;
    default: break;
  }
  return precision;
}

void read_training(const Node& node, TrainingSpec& training) {
  static constexpr std::array<std::string_view, 40> kKeys{"mode",
                                                          "batch_size",
                                                          "sequence_length",
                                                          "target_sequence_length",
                                                          "image_size",
                                                          "num_frames",
                                                          "num_images",
                                                          "freeze",
                                                          "new_tokens",
                                                          "precision",
                                                          "autocast",
                                                          "optimizer",
                                                          "gradient_checkpointing",
                                                          "gradient_accumulation_steps",
                                                          "attention",
                                                          "lora",
                                                          "quantization",
                                                          "preference",
                                                          "fused_loss",
                                                          "dropout",
                                                          "loss",
                                                          "samples_per_epoch",
                                                          "drop_last",
                                                          "warmup_forward",
                                                          "cudnn_benchmark",
                                                          "gradient_clipping",
                                                          "zero_grad",
                                                          "kv_cache",
                                                          "lengths",
                                                          "grad_scaler",
                                                          "hold_output",
                                                          "retain_graph",
                                                          "use_cache",
                                                          "padding_mask",
                                                          "logits_to_keep",
                                                          "channels_last",
                                                          "checkpoint_reentrant",
                                                          "label_smoothing",
                                                          "compile",
                                                          "evaluation"};
  node.check_keys(kKeys);
  ModelSettings& settings = training.settings;
  const auto find = [&](std::string_view key) -> const Node* {
    const Node* found = node.find(key);
    return given(found) ? found : nullptr;
  };
  const auto extent = [&](std::string_view key, std::int64_t& value, std::int64_t least = 1,
                          std::int64_t most = kMost) {
    if (const Node* found = find(key)) value = found->as_int(least, most);
  };
  const auto flag = [&](std::string_view key, bool& value) {
    if (const Node* found = find(key)) value = found->as_bool();
  };
  if (const Node* n = find("mode"))
    training.mode = static_cast<Mode>(n->as_choice({"train", "inference", "generate"}));
  extent("batch_size", training.batch_size);
  extent("sequence_length", settings.sequence_length);
  extent("target_sequence_length", settings.target_sequence_length);
  extent("num_frames", settings.num_frames);
  if (const Node* n = find("num_images")) settings.num_images = n->as_int(0, kMostImages);
  extent("new_tokens", settings.new_tokens, 1, kMostNewTokens);
  extent("logits_to_keep", settings.logits_to_keep, 0);
  extent("gradient_accumulation_steps", training.accumulation_steps);
  if (const Node* n = find("image_size")) read_image_size(*n, settings);
  if (const Node* n = find("freeze")) settings.frozen = read_frozen(*n);
  if (const Node* n = find("precision")) training.precision = read_precision(*n);
  if (const Node* n = find("autocast")) training.precision.autocast = n->as_dtype();
  settings.precision = training.precision.parameters;
  if (const Node* n = find("optimizer")) read_optimizer(*n, training);
  if (const Node* n = find("gradient_checkpointing")) read_checkpointing(*n, settings);
  if (const Node* n = find("attention")) {
    const std::optional<AttentionImplementation> known = parse_attention(n->as_string());
    if (!known) n->as_choice({"eager", "efficient", "flash", "math", "sdpa"});
    settings.attention = *known;
  }
  if (const Node* n = find("lora")) read_lora(*n, training);
  if (const Node* n = find("quantization")) read_quantization(*n, training);
  if (const Node* n = find("preference")) read_preference(*n, training);
  flag("fused_loss", settings.fused_loss);
  if (const Node* n = find("dropout")) settings.dropout = n->as_number(0, 1);
  if (const Node* n = find("loss")) settings.loss = parse_loss(*n);
  if (const Node* n = find("samples_per_epoch")) training.samples_per_epoch = n->as_int(1, kMost);
  flag("drop_last", training.drop_last);
  if (const Node* n = find("evaluation")) read_evaluation(*n, training);
  flag("warmup_forward", training.warmup_forward);
  flag("cudnn_benchmark", training.cudnn_benchmark);
  flag("compile", training.compiled);
  if (const Node* n = find("gradient_clipping"))
    training.gradient_clipping = n->is_bool() ? n->as_bool() : n->as_number(0) > 0;
  if (const Node* n = find("zero_grad")) {
    training.zero_grad =
        static_cast<ZeroGrad>(n->as_choice({"after_step", "before_backward", "in_place"}));
    training.zero_grad_given = true;
  }
  if (const Node* n = find("kv_cache")) {
    settings.kv_cache = static_cast<KvCache>(n->as_choice({"dynamic", "static", "tuple"}));
    training.kv_cache_given = true;
  }
  if (const Node* n = find("lengths"))
    training.lengths = static_cast<Lengths>(n->as_choice({"fixed", "varying"}));
  flag("grad_scaler", training.grad_scaler);
  flag("hold_output", training.hold_output);
  if (const Node* n = find("retain_graph")) training.retain_graph = n->as_bool();
  if (const Node* n = find("use_cache")) training.use_cache = n->as_bool();
  flag("padding_mask", settings.padding_mask);
  flag("channels_last", settings.channels_last);
  flag("checkpoint_reentrant", settings.checkpoint_reentrant);
  if (const Node* n = find("label_smoothing")) settings.label_smoothing = n->as_number(0, 1);
}

}  // namespace memfathom

#include <algorithm>
#include <array>
#include <string_view>

#include "core/error.h"
#include "estimator/job/read_job.h"
#include "estimator/models/blocks/losses.h"

namespace memfathom {
namespace {

constexpr std::int64_t kMax = std::int64_t{1} << 40;
constexpr std::int64_t kMaxNewTokens = 1 << 20;  // every one of them is replayed
constexpr std::int64_t kAssumedNewTokens = 128;  // also those of the web page's control
constexpr std::int64_t kMaxImages = 10'000;

// The names of a table's rows, in its order.
template <typename Row, std::size_t N>
constexpr std::array<std::string_view, N> names_in(const std::array<Row, N>& rows) {
  std::array<std::string_view, N> names;
  for (std::size_t i = 0; i < N; ++i) names[i] = rows[i].name;
  return names;
}

void read_mode(const Node& node, TrainingSpec& training) { training.mode = node.as_enum<Mode>(); }

struct FrozenPart {
  std::string_view name;
  bool FrozenParts::*member;
};

constexpr std::array kFrozenParts{FrozenPart{"vision_tower", &FrozenParts::vision},
                                  FrozenPart{"projector", &FrozenParts::projector},
                                  FrozenPart{"language_model", &FrozenParts::language}};

constexpr auto kFrozenPartNames = names_in(kFrozenParts);

// Parts of a model that reads images which do not learn.
void read_frozen(const Node& node, TrainingSpec& training) {
  FrozenParts frozen;
  for (const Node& part : node.items())
    frozen.*kFrozenParts[part.as_choice(kFrozenPartNames)].member = true;
  training.settings.frozen = frozen;
}

void read_image_size(const Node& node, TrainingSpec& training) {
  ModelSettings& settings = training.settings;
  if (node.is_list()) {
    const std::vector<std::int64_t> size = node.as_ints(1, kMax);
    if (size.size() != 2) node.refuse("it must be one number or [height, width]");
    settings.image_height = size[0];
    settings.image_width = size[1];
  } else {
    settings.image_height = settings.image_width = node.as_int(1, kMax);
  }
}

OptimizerName optimizer_name(const Node& node) {
  const std::optional<OptimizerName> known = parse_optimizer(node.as_string());
  return known ? *known : node.as_enum<OptimizerName>();  // whose error says which was meant
}

void read_optimizer(const Node& node, TrainingSpec& training) {
  OptimizerOptions& optimizer = training.optimizer;
  const Node& name = node.is_map() ? node.at("name") : node;
  training.paged_optimizer = name.is_string() && name.as_string().starts_with("paged");
  optimizer.bitsandbytes = name.is_string() && names_bitsandbytes(name.as_string());
  if (name.is_string() && names_fused(name.as_string()))
    training.optimizer_form = OptimizerForm::kFused;
  if (!node.is_map()) {
    optimizer.name = optimizer_name(node);
    return;
  }
  node.check_keys({"name", "implementation", "state_precision", "master_weights", "weight_decay"});
  optimizer.name = optimizer_name(node.at("name"));
  if (const Node* form = node.find("implementation")) {
    training.trainer_optimizer = form->as_string() == "trainer";
    const std::optional<OptimizerForm> known = parse_optimizer_form(form->as_string());
    if (!training.trainer_optimizer)
      training.optimizer_form = known ? *known : form->as_enum<OptimizerForm>();
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

// A word, or of weights that were stored quantized {method, bits, group_size, not_converted}.
void read_quantization(const Node& node, TrainingSpec& training) {
  if (!node.is_map()) {
    training.quantization = node.as_enum<Quantization>();
    return;
  }
  node.check_keys({"method", "bits", "group_size", "not_converted"});
  training.quantization = node.at("method").as_enum<Quantization>();
  if (const Node* bits = node.find("bits")) training.packed.bits = bits->as_int(2, 8);
  if (const Node* group = node.find("group_size"))
    training.packed.group = std::max<std::int64_t>(0, group->as_int(-1, kMax));
  if (const Node* names = node.find("not_converted")) {
    for (const Node& name : names->items())
      training.packed.not_converted.push_back(name.as_string());
  }
}

void read_lora(const Node& node, TrainingSpec& training) {
  if (node.is_null()) return;
  node.check_keys({"rank", "targets", "dropout", "precision"});
  LoraSpec lora;
  lora.rank = node.at("rank").as_int(1, kMax);
  if (const Node* targets = node.find("targets")) {
    if (targets->is_string()) {
      lora.targets.push_back(targets->as_string());
    } else {
      for (const Node& target : targets->items()) lora.targets.push_back(target.as_string());
    }
  } else {
    lora.targets = {"q_proj", "v_proj"};
  }
  if (const Node* p = node.find("dropout")) lora.dropout = p->as_number(0, 1);
  if (const Node* precision = node.find("precision");
      precision != nullptr && !precision->is_null()) {
    lora.precision = precision->as_dtype();
  }
  training.lora = lora;
}

void read_checkpointing(const Node& node, TrainingSpec& training) {
  training.settings.checkpointing =
      node.is_bool() ? (node.as_bool() ? Checkpointing::kFull : Checkpointing::kNone)
                     : node.as_enum<Checkpointing>();
}

void read_attention(const Node& node, TrainingSpec& training) {
  const std::optional<AttentionImplementation> known = parse_attention(node.as_string());
  training.settings.attention = known ? *known : node.as_enum<AttentionImplementation>();
}

void read_loss(const Node& node, TrainingSpec& training) {
  training.settings.loss = parse_loss(node);
}

void read_clipping(const Node& node, TrainingSpec& training) {
  training.gradient_clipping = node.is_bool() ? node.as_bool() : node.as_number(0) > 0;
}

void read_zero_grad(const Node& node, TrainingSpec& training) {
  training.zero_grad = node.as_enum<ZeroGrad>();
}

void read_kv_cache(const Node& node, TrainingSpec& training) {
  training.kv_cache = node.as_enum<KvCache>();
}

void read_lengths(const Node& node, TrainingSpec& training) {
  training.lengths = node.as_enum<Lengths>();
}

void read_parameters_precision(const Node& node, TrainingSpec& training) {
  training.precision = read_precision(node);
}

void read_autocast(const Node& node, TrainingSpec& training) {
  training.precision.autocast = node.as_dtype();
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
    training.reference = reference->as_enum<Reference>();
  }
}

// true: with the batches of training.
void read_evaluation(const Node& node, TrainingSpec& training) {
  if (node.is_bool()) {
    training.evaluation_batch = node.as_bool() ? training.batch_size : 0;
    return;
  }
  node.check_keys({"batch_size"});
  training.evaluation_batch = node.at("batch_size").as_int(1, kMax);
}

// A member of TrainingSpec, or of the settings in it.
template <auto Member>
auto& member(TrainingSpec& training) {
  if constexpr (requires { training.*Member; }) {
    return training.*Member;
  } else {
    return training.settings.*Member;
  }
}

template <auto Member, std::int64_t Least = 1, std::int64_t Most = kMax>
void count(const Node& node, TrainingSpec& training) {
  member<Member>(training) = node.as_int(Least, Most);
}

template <auto Member>
void flag(const Node& node, TrainingSpec& training) {
  member<Member>(training) = node.as_bool();
}

template <auto Member>
void share(const Node& node, TrainingSpec& training) {
  member<Member>(training) = node.as_number(0, 1);
}

struct Key {
  std::string_view name;
  void (*read)(const Node& node, TrainingSpec& training);
};

using Spec = TrainingSpec;
using Settings = ModelSettings;

// In this order: autocast may override what precision says, and evaluation takes over the batch.
constexpr std::array kKeys{
    Key{"mode", read_mode},
    Key{"batch_size", count<&Spec::batch_size>},
    Key{"sequence_length", count<&Settings::sequence_length>},
    Key{"target_sequence_length", count<&Settings::target_sequence_length>},
    Key{"image_size", read_image_size},
    Key{"num_frames", count<&Settings::num_frames>},
    Key{"num_images", count<&Settings::num_images, 0, kMaxImages>},
    Key{"freeze", read_frozen},
    Key{"new_tokens", count<&Settings::new_tokens, 1, kMaxNewTokens>},
    Key{"precision", read_parameters_precision},
    Key{"autocast", read_autocast},
    Key{"optimizer", read_optimizer},
    Key{"gradient_checkpointing", read_checkpointing},
    Key{"gradient_accumulation_steps", count<&Spec::accumulation_steps>},
    Key{"attention", read_attention},
    Key{"lora", read_lora},
    Key{"quantization", read_quantization},
    Key{"preference", read_preference},
    Key{"fused_loss", flag<&Settings::fused_loss>},
    Key{"dropout", share<&Settings::dropout>},
    Key{"loss", read_loss},
    Key{"samples_per_epoch", count<&Spec::samples_per_epoch>},
    Key{"drop_last", flag<&Spec::drop_last>},
    Key{"warmup_forward", flag<&Spec::warmup_forward>},
    Key{"cudnn_benchmark", flag<&Spec::cudnn_benchmark>},
    Key{"gradient_clipping", read_clipping},
    Key{"zero_grad", read_zero_grad},
    Key{"kv_cache", read_kv_cache},
    Key{"lengths", read_lengths},
    Key{"grad_scaler", flag<&Spec::grad_scaler>},
    Key{"hold_output", flag<&Spec::hold_output>},
    Key{"retain_graph", flag<&Spec::retain_graph>},
    Key{"use_cache", flag<&Spec::use_cache>},
    Key{"padding_mask", flag<&Settings::padding_mask>},
    Key{"logits_to_keep", count<&Settings::logits_to_keep, 0>},
    Key{"channels_last", flag<&Settings::channels_last>},
    Key{"checkpoint_reentrant", flag<&Settings::checkpoint_reentrant>},
    Key{"label_smoothing", share<&Settings::label_smoothing>},
    Key{"compile", flag<&Spec::compiled>},
    Key{"evaluation", read_evaluation},
};

constexpr auto kKeyNames = names_in(kKeys);

struct NamedPrecision {
  std::string_view name;
  Precision precision;
};

constexpr std::array kPrecisions{
    NamedPrecision{"fp32", {DType::kFp32, {}}},
    NamedPrecision{"bf16", {DType::kBf16, {}}},
    NamedPrecision{"fp16", {DType::kFp16, {}}},
    NamedPrecision{"amp-bf16", {DType::kFp32, DType::kBf16}},
    NamedPrecision{"amp-fp16", {DType::kFp32, DType::kFp16}},
    NamedPrecision{"float32", {DType::kFp32, {}}},
    NamedPrecision{"bfloat16", {DType::kBf16, {}}},
    NamedPrecision{"float16", {DType::kFp16, {}}},
    NamedPrecision{"fp64", {DType::kFp64, {}}},
};

constexpr auto kPrecisionNames = names_in(kPrecisions);

}  // namespace

Precision read_precision(const Node& node) {
  const std::string_view text = node.is_string() ? node.as_string() : std::string_view();
  if (text.starts_with("int") || text.ends_with("bit") || text.starts_with("nf4")) {
    node.refuse(
        "that is how weights are stored: write training.quantization (int8, nf4) or "
        "--load-in-8bit, --load-in-4bit, and the type that computes here");
  }
  return kPrecisions[node.as_choice(kPrecisionNames)].precision;
}

std::span<const std::string_view> training_keys() { return kKeyNames; }

void read_training(const Node& node, TrainingSpec& training) {
  node.check_keys(kKeyNames);
  for (const Key& key : kKeys) {
    const Node* const found = node.find(key.name);
    if (found != nullptr && !found->is_null()) key.read(*found, training);
  }
  if (training.mode == Mode::kGenerate && training.settings.new_tokens == 0)
    training.settings.new_tokens = kAssumedNewTokens;
}

}  // namespace memfathom

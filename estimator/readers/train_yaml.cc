#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "estimator/readers/formats.h"
#include "estimator/readers/frozen_modules.h"
#include "estimator/readers/script_model.h"

namespace memfathom {
namespace {

// What people's own training scripts call a setting, flat or in the sections they like.
struct Spellings {
  std::string_view job;
  std::string_view sections;  // separated by spaces; "." is the file itself
  std::string_view words;     // the first that a file has decides
  FieldKind kind = FieldKind::kPlain;
};

constexpr auto kSpellings = std::to_array<Spellings>({
    {"training.batch_size", ". train. training. data. trainer. dataloader. dataset.",
     "batch batch_size train_batch_size micro_batch_size train_batchsize batchsize bs "
     "batch_size_per_gpu batch_size_per_device per_gpu_batch_size samples_per_gpu"},
    {"training.batch_size", "model.", "micro_batch_size"},
    {"training.gradient_accumulation_steps", ". train. training. trainer.",
     "accumulation_steps gradient_accumulation_steps accumulate_grad_batches grad_accum_steps "
     "gradient_accumulation grad_accumulation_steps"},
    {"training.image_size", ". data.", "image_size img_size resolution train_resolution imgsz"},
    {"training.num_frames", ". data.", "num_frames"},
    {"training.sequence_length", ". train. training. data. model. trainer.",
     "sequence_length seq_length seq_len max_seq_length max_seq_len block_size context_length "
     "max_sequence_length max_len encoder_seq_length"},
    {"training.gradient_checkpointing", ". train. training. trainer.",
     "gradient_checkpointing grad_checkpointing grad_ckpt activation_checkpointing",
     FieldKind::kCheckpointing},
    {"training.optimizer", ". train. training.", "optimizer opt", FieldKind::kOptimizer},
    {"parallel.num_gpus", ". train. training. trainer.", "num_gpus n_gpus n_gpu ngpus"},
    {"parallel.tensor", "model.", "tensor_model_parallel_size"},
    {"parallel.pipeline", "model.", "pipeline_model_parallel_size"},
    {"target.memory", ". train.", "gpu_memory", FieldKind::kGibibytes},
});

std::vector<std::string_view> words_in(std::string_view text) {
  std::vector<std::string_view> words;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(' '), text.size());
    words.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return words;
}

// Every word in every section; `keys` keeps their texts.
std::vector<Field> crossed_fields(std::deque<std::string>& keys) {
  std::vector<Field> fields;
  for (const Spellings& spellings : kSpellings) {
    for (const std::string_view section : words_in(spellings.sections)) {
      for (const std::string_view word : words_in(spellings.words)) {
        keys.push_back((section == "." ? std::string() : std::string(section)) + std::string(word));
        fields.push_back({spellings.job, keys.back(), spellings.kind});
      }
    }
  }
  return fields;
}

// Copies and graphs that such scripts keep beside the model.
constexpr auto kNotModelled = std::to_array<std::string_view>(
    {"use_ema", "model_ema", "ema", "train.ema", "training.ema", "compile", "torch_compile",
     "torchcompile", "train_text_encoder", "training.compile"});

void set_image(ParsedFile& parsed) {
  const Node* shape = value_at(parsed.content, "data.shape");
  if (shape != nullptr && shape->is_list() && shape->items().size() == 2) {
    parsed.set("training.image_size", *shape);
    return;
  }
  // Channels first, or a time before both sides: the file does not tell.
  if (shape != nullptr)
    leave_open("data.shape", "sizes",
               fmt::format("{}: data.shape is {}; two numbers are a height and a width",
                           parsed.file, shape->shown()),
               parsed);
  const Node* height = anywhere(parsed.content, {"height"});
  const Node* width = nullptr;
  for (const char* key : {"width", "data.width", "train.width", "training.width"}) {
    if (width == nullptr) width = value_at(parsed.content, key);
  }
  // Without a height, the width of a network.
  if (height == nullptr || width == nullptr) return;
  Node size = Node::list();
  size.append(Node::integer(height->as_int(1)));
  size.append(Node::integer(width->as_int(1)));
  parsed.set("training.image_size", std::move(size));
}

// "16-mixed" of Lightning, "fp16" of accelerate's scripts: autocast; "bf16-true": whole weights.
std::string precision_of(std::string name) {
  const auto ends = [&](std::string_view ending) { return name.ends_with(ending); };
  const bool whole = ends("-true");
  if (whole) name.erase(name.size() - 5);
  if (ends("-mixed")) name.erase(name.size() - 6);
  if (name.starts_with("amp_")) name.erase(0, 4);  // open_clip's "amp_bf16"
  if (name == "amp") name = "fp16";
  const bool bf16 = name == "bf16" || name == "bfloat16";
  if (!bf16 && name != "16" && name != "fp16" && name != "float16") return "";
  return fmt::format("{}{}", whole ? "" : "amp-", bf16 ? "bf16" : "fp16");
}

bool is_left_to_others(const Node& value) {
  const std::string& word = value.as_string();
  return word.empty() || word == "auto" || word == "none" || word == "off" || word == "no";
}

void set_precision(ParsedFile& parsed) {
  const Node& tree = parsed.content;
  const Node* amp = anywhere(tree, {"use_amp", "amp", "use_fp16", "fp16"});
  if (amp != nullptr && amp->is_string() && !is_left_to_others(*amp)) {
    withhold(amp->path(), "precision",
             fmt::format("{}: amp is {}; fp32 is counted", parsed.file, amp->as_string()), parsed);
    return;
  }
  if (amp != nullptr && (amp->is_bool() || amp->is_number())) {
    const Node* type = anywhere(tree, {"amp_dtype"});
    const bool bf16 = type != nullptr && type->is_string() && type->as_string() == "bfloat16";
    if (is_on(*amp)) {
      parsed.set("training.precision", Node::string(bf16 ? "amp-bf16" : "amp-fp16"));
      return;
    }
  }
  if (const Node* bf16 = anywhere(tree, {"bf16", "use_bf16"});
      bf16 != nullptr && is_switch(*bf16) && is_on(*bf16)) {
    parsed.set("training.precision", Node::string("amp-bf16"));
    return;
  }
  const Node* named = anywhere(tree, {"mixed_precision", "precision", "dtype"});
  if (named == nullptr) named = value_at(tree, "trainer.precision");
  if (named == nullptr) return;
  const std::string name = named->is_string() ? named->as_string() : named->shown();
  if (std::string precision = precision_of(name); !precision.empty()) {
    parsed.set("training.precision", Node::string(std::move(precision)));
    return;
  }
  // fp8, 64-true, transformer-engine, ...
  for (const char* whole : {"no", "none", "32", "32-true", "fp32", "float32", "float", "full"}) {
    if (name == whole) return;
  }
  withhold(named->path(), "precision",
           fmt::format("{}: precision {} is not known here; fp32 is counted", parsed.file, name),
           parsed);
}

}  // namespace

std::span<const Field> train_yaml_fields() {
  static std::deque<std::string> keys;
  static const std::vector<Field> fields = crossed_fields(keys);
  return fields;
}

bool write_to_train_yaml(const KeyChange& change, const Node& job, Node& content) {
  if (change.key == "training.image_size") {
    const Node& size = change.value;
    const bool both = size.is_list() && size.items().size() == 2;
    bool said = false;
    for (const std::string_view section : script_sections()) {
      for (const std::size_t side : {std::size_t{0}, std::size_t{1}}) {
        const std::string key = std::string(section) + (side == 0 ? "height" : "width");
        if (value_at(content, key) == nullptr) continue;
        content.assign(key, both ? size.items()[side] : size);
        said = true;
      }
    }
    return said;
  }
  if (change.key == "training.precision") {
    const std::string& name = change.value.as_string();
    if (name != "amp-fp16" && name != "fp32") return false;
    for (const std::string_view section : script_sections()) {
      for (const char* flag : {"use_amp", "amp"}) {
        const std::string key = std::string(section) + flag;
        if (value_at(content, key) == nullptr) continue;
        content.assign(key, Node::boolean(name == "amp-fp16"));
        return true;
      }
    }
    return false;
  }
  // model.modules[1].train, and no_grad with it
  constexpr std::string_view kModules = "model.modules[";
  const Node* model = value_at(content, "model");
  if (!change.key.starts_with(kModules) || model == nullptr || !model->is_map()) return false;
  for (const Node& entry : model->entries()) {
    if (!entry.key().starts_with(kFreeze)) continue;
    const std::optional<std::size_t> index = module_named(job, entry.key().substr(kFreeze.size()));
    if (!index || !change.key.starts_with(fmt::format("{}{}].", kModules, *index))) continue;
    const bool frozen =
        change.value.is_bool() ? change.value.as_bool() : change.value.as_string() == "frozen";
    content.assign(fmt::format("model.{}", entry.key()), Node::boolean(frozen));
    return true;
  }
  return false;
}

void read_train_yaml(ParsedFile& parsed) {
  const Node& tree = parsed.content;
  read_fields(train_yaml_fields(), parsed);
  set_image(parsed);
  set_script_model(parsed);
  set_precision(parsed);
  // Lightning's may also be -1, "auto" or a list of GPUs.
  if (const Node* devices = value_at(tree, "trainer.devices");
      devices != nullptr && devices->is_int() && devices->as_int() > 0)
    parsed.set("parallel.num_gpus", *devices);
  if (is_true_at(tree, "use_8bit_adam"))
    parsed.set("training.optimizer", Node::string("adamw-8bit"));
  if (is_true_at(tree, "enable_xformers_memory_efficient_attention"))
    parsed.set("training.attention", Node::string("efficient"));
  list_not_modelled(kNotModelled, parsed);
}

}  // namespace memfathom

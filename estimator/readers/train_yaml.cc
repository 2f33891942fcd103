#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string>

#include "estimator/readers/formats.h"
#include "estimator/readers/frozen_modules.h"
#include "estimator/readers/script_model.h"

namespace memfathom {
namespace {

// The spellings of people's own training scripts, flat or in the sections they like.
constexpr auto kFields = std::to_array<Field>({
    {"training.batch_size", "batch"},
    {"training.batch_size", "batch_size"},
    {"training.batch_size", "train_batch_size"},
    {"training.batch_size", "micro_batch_size"},
    {"training.batch_size", "train_batchsize"},
    {"training.batch_size", "batchsize"},
    {"training.batch_size", "train.batchsize"},
    {"training.batch_size", "train.train_batchsize"},
    {"training.batch_size", "train.train_batch_size"},
    {"training.batch_size", "training.train_batchsize"},
    {"training.batch_size", "training.train_batch_size"},
    {"training.batch_size", "data.train_batchsize"},
    {"training.batch_size", "data.train_batch_size"},
    {"training.batch_size", "train.batch_size"},
    {"training.batch_size", "training.batch_size"},
    {"training.batch_size", "data.batch_size"},
    {"training.batch_size", "trainer.batch_size"},
    {"training.batch_size", "model.micro_batch_size"},
    {"training.gradient_accumulation_steps", "accumulation_steps"},
    {"training.gradient_accumulation_steps", "gradient_accumulation_steps"},
    {"training.gradient_accumulation_steps", "accumulate_grad_batches"},
    {"training.gradient_accumulation_steps", "train.accumulation_steps"},
    {"training.gradient_accumulation_steps", "training.accumulation_steps"},
    {"training.gradient_accumulation_steps", "training.gradient_accumulation_steps"},
    {"training.gradient_accumulation_steps", "trainer.accumulate_grad_batches"},
    {"training.image_size", "image_size"},
    {"training.image_size", "img_size"},
    {"training.image_size", "resolution"},
    {"training.image_size", "data.image_size"},
    {"training.image_size", "data.img_size"},
    {"training.image_size", "data.resolution"},
    {"training.image_size", "data.train_resolution"},
    {"training.num_frames", "num_frames"},
    {"training.num_frames", "data.num_frames"},
    {"training.sequence_length", "sequence_length"},
    {"training.sequence_length", "seq_length"},
    {"training.sequence_length", "seq_len"},
    {"training.sequence_length", "max_seq_length"},
    {"training.sequence_length", "block_size"},
    {"training.sequence_length", "training.seq_len"},
    {"training.sequence_length", "model.encoder_seq_length"},
    {"training.gradient_checkpointing", "gradient_checkpointing", FieldKind::kCheckpointing},
    {"training.gradient_checkpointing", "grad_checkpointing", FieldKind::kCheckpointing},
    {"training.gradient_checkpointing", "train.gradient_checkpointing", FieldKind::kCheckpointing},
    {"training.gradient_checkpointing", "training.gradient_checkpointing",
     FieldKind::kCheckpointing},
    {"training.optimizer", "optimizer", FieldKind::kOptimizer},
    {"training.optimizer", "opt", FieldKind::kOptimizer},
    {"training.optimizer", "train.optimizer", FieldKind::kOptimizer},
    {"training.optimizer", "training.optimizer", FieldKind::kOptimizer},
    {"parallel.num_gpus", "num_gpus"},
    {"parallel.tensor", "model.tensor_model_parallel_size"},
    {"parallel.pipeline", "model.pipeline_model_parallel_size"},
    {"target.memory", "gpu_memory", FieldKind::kGibibytes},
    {"target.memory", "train.gpu_memory", FieldKind::kGibibytes},
});

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
  const Node* amp = anywhere(tree, {"use_amp", "amp", "use_fp16"});
  if (amp != nullptr && amp->is_string() && !is_left_to_others(*amp)) {
    withhold(amp->path(), "precision",
             fmt::format("{}: amp is {}; fp32 is counted", parsed.file, amp->as_string()), parsed);
    return;
  }
  if (amp != nullptr && (amp->is_bool() || amp->is_number())) {
    const Node* type = anywhere(tree, {"amp_dtype"});
    const bool bf16 = type != nullptr && type->is_string() && type->as_string() == "bfloat16";
    if (is_on(*amp)) parsed.set("training.precision", Node::string(bf16 ? "amp-bf16" : "amp-fp16"));
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

std::span<const Field> train_yaml_fields() { return kFields; }

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
  read_fields(kFields, parsed);
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

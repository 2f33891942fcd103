#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string>

#include "estimator/readers/formats.h"
#include "estimator/readers/frozen_modules.h"

namespace memfathom {
namespace {

// The spellings of people's own training scripts, flat or in the sections they like.
constexpr auto kFields = std::to_array<Field>({
    {"training.batch_size", "batch"},
    {"training.batch_size", "batch_size"},
    {"training.batch_size", "train.batch_size"},
    {"training.batch_size", "training.batch_size"},
    {"training.batch_size", "data.batch_size"},
    {"training.gradient_accumulation_steps", "accumulation_steps"},
    {"training.gradient_accumulation_steps", "gradient_accumulation_steps"},
    {"training.gradient_accumulation_steps", "train.accumulation_steps"},
    {"training.gradient_accumulation_steps", "training.accumulation_steps"},
    {"training.gradient_accumulation_steps", "training.gradient_accumulation_steps"},
    {"training.image_size", "image_size"},
    {"training.image_size", "data.image_size"},
    {"training.num_frames", "num_frames"},
    {"training.num_frames", "data.num_frames"},
    {"training.sequence_length", "sequence_length"},
    {"training.gradient_checkpointing", "gradient_checkpointing", FieldKind::kCheckpointing},
    {"training.gradient_checkpointing", "train.gradient_checkpointing", FieldKind::kCheckpointing},
    {"training.gradient_checkpointing", "training.gradient_checkpointing",
     FieldKind::kCheckpointing},
    {"training.optimizer", "optimizer", FieldKind::kOptimizer},
    {"training.optimizer", "train.optimizer", FieldKind::kOptimizer},
    {"training.optimizer", "training.optimizer", FieldKind::kOptimizer},
    {"parallel.num_gpus", "num_gpus"},
    {"target.memory", "gpu_memory", FieldKind::kGibibytes},
    {"target.memory", "train.gpu_memory", FieldKind::kGibibytes},
});

constexpr std::array<std::string_view, 5> kSections{"", "model.", "data.", "train.", "training."};

const Node* anywhere(const Node& tree, std::initializer_list<std::string_view> keys) {
  for (const std::string_view section : kSections) {
    for (const std::string_view key : keys) {
      if (const Node* value = value_at(tree, std::string(section) + std::string(key))) return value;
    }
  }
  return nullptr;
}

void set_image(Reading& reading) {
  const Node* height = anywhere(reading.content, {"height"});
  const Node* width = anywhere(reading.content, {"width"});
  if (height == nullptr || width == nullptr) return;
  Node size = Node::list();
  size.append(Node::integer(height->as_int(1)));
  size.append(Node::integer(width->as_int(1)));
  reading.set("training.image_size", std::move(size));
}

// A family by its name ("fno", "unet"), with the width and depth that the file says.
void set_model(Reading& reading) {
  const Node& tree = reading.content;
  const Node* name = anywhere(tree, {"model_name", "model_type"});
  // A bare "name" is the model's only in its own section.
  for (const char* key : {"model.name", "model"}) {
    if (name == nullptr) name = value_at(tree, key);
  }
  if (name != nullptr && !name->is_string()) name = nullptr;
  const Node* width = anywhere(tree, {"hidden_dim", "hidden_size"});
  const Node* depth = anywhere(tree, {"num_layers", "n_layers"});
  if (name == nullptr && width == nullptr) return;
  // A width without a name is completed by own_family.h.
  if (name != nullptr) reading.set("model.config.model_type", *name);
  if (width != nullptr) reading.set("model.config.hidden_size", Node::integer(width->as_int(1)));
  if (depth != nullptr)
    reading.set("model.config.num_hidden_layers", Node::integer(depth->as_int(1)));
}

}  // namespace

std::span<const Field> train_yaml_fields() { return kFields; }

bool say_in_train_yaml(const KeyChange& change, const Node& job, Node& content) {
  if (change.key == "training.image_size") {
    const Node& size = change.value;
    const bool both = size.is_list() && size.items().size() == 2;
    bool said = false;
    for (const std::string_view section : kSections) {
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
    for (const std::string_view section : kSections) {
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

void read_train_yaml(Reading& reading) {
  read_fields(kFields, reading);
  set_image(reading);
  set_model(reading);
  if (const Node* amp = anywhere(reading.content, {"use_amp", "amp"});
      amp != nullptr && amp->as_bool()) {
    reading.set("training.precision", Node::string("amp-fp16"));
  }
}

}  // namespace memfathom

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string>

#include "estimator/readers/formats.h"

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
  const Node* name = anywhere(tree, {"model_name", "model_type", "name", "model"});
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

void read_train_yaml(Reading& reading) {
  read_fields(kFields, reading);
  set_image(reading);
  set_model(reading);
  if (const Node* amp = anywhere(reading.content, {"use_amp", "amp"});
      amp != nullptr && amp->as_bool()) {
    reading.set("training.precision", Node::string("amp-fp16"));
  }
  const Node* model = value_at(reading.content, "model");
  if (model == nullptr || !model->is_map()) return;
  for (const Node& entry : model->entries()) {
    if (!entry.key().starts_with("freeze_")) continue;
    reading.not_modelled.push_back(fmt::format(
        "{}: \"{}\": which module is frozen is said with model.modules (docs/from-your-script.md)",
        reading.file, entry.key()));
  }
}

}  // namespace memfathom

#include "estimator/models/grid_presets.h"

#include <fmt/format.h>

#include <string>
#include <utility>
#include <vector>

#include "estimator/models/blocks/image_network.h"
#include "estimator/models/families/families.h"
#include "estimator/models/families/vision/classifiers/classifier_presets.h"
#include "estimator/models/preset_names.h"
#include "estimator/models/presets.h"
#include "estimator/models/registry.h"

namespace memfathom {
namespace {

constexpr std::int64_t kMaxClasses = std::int64_t{1} << 24;

constexpr GridPreset kVggt{"vggt-1b", 1190596120, "VGGT without its track head"};

const Preset* find_partial(std::string_view normalized_name) {
  for (const Preset& preset : presets()) {
    if (preset.is_partial && normalized_preset(preset.name) == normalized_name) return &preset;
  }
  return nullptr;
}

const ClassifierPreset* find_classifier(std::string_view normalized_name) {
  for (const ClassifierPreset& preset : classifier_presets()) {
    if (normalized_preset(preset.name) == normalized_name) return &preset;
  }
  return nullptr;
}

Node config_of(const Preset& preset) { return parse_json(preset.config, std::string(preset.name)); }

std::unique_ptr<Network> make_classifier(Builder& builder, const ClassifierPreset& preset,
                                         const Node& model, ModelSettings settings) {
  if (settings.image_height == 0) settings.image_height = settings.image_width = preset.image_size;
  if (preset.fixed_size &&
      (settings.image_height != preset.image_size || settings.image_width != preset.image_size)) {
    model.at("preset").refuse(
        fmt::format("it takes images of {} x {} only; leave training.image_size out",
                    preset.image_size, preset.image_size));
  }
  std::int64_t classes = 1000;
  if (const Node* node = model.find("num_classes")) classes = node->as_int(1, kMaxClasses);
  const ImageContext context{builder, settings};
  Layer layers = preset.make(context, classes, preset.image_size);
  builder.finish();
  return make_image_network(
      builder.session(), settings, std::move(layers),
      {{3, settings.image_height, settings.image_width}, {classes}, LossKind::kCrossEntropy});
}

}  // namespace

std::unique_ptr<Network> make_grid_preset(Builder& builder, std::string_view normalized_name,
                                          const Node& model, const ModelSettings& settings) {
  if (const ClassifierPreset* preset = find_classifier(normalized_name))
    return make_classifier(builder, *preset, model, settings);
  if (normalized_name == normalized_preset(kVggt.name)) {
    std::unique_ptr<Network> made = make_vggt(builder, model, settings);
    builder.finish();
    return made;
  }
  const Preset* preset = find_partial(normalized_name);
  if (preset == nullptr) return nullptr;
  std::vector<std::string> assumptions;  // none of these families makes any
  return make_from_family(builder, config_of(*preset), settings, assumptions);
}

std::optional<Node> partial_preset_config(std::string_view normalized_name) {
  // A classifier of the same name comes first, as in make_grid_preset().
  if (find_classifier(normalized_name) != nullptr) return std::nullopt;
  const Preset* preset = find_partial(normalized_name);
  return preset != nullptr ? std::optional(config_of(*preset)) : std::nullopt;
}

LoraTargets preset_lora_targets(std::string_view name) {
  const std::string normalized = normalized_preset(name);
  if (const ClassifierPreset* preset = find_classifier(normalized)) return preset->lora_targets;
  const Preset* preset = find_partial(normalized);
  if (preset == nullptr) return FamilyTraits{}.lora_targets;
  const ModelFamily* family = find_family(config_of(*preset));
  // diffusers loads no adapters into unconditional U-Nets, so none are suggested for the preset.
  const bool has_adapters = family != nullptr && family->name != "UNet2DModel";
  return has_adapters ? family->traits.lora_targets : FamilyTraits{}.lora_targets;
}

std::span<const GridPreset> grid_presets() {
  static const std::vector<GridPreset> kAll = [] {
    std::vector<GridPreset> all;
    for (const ClassifierPreset& preset : classifier_presets())
      all.push_back({preset.name, preset.parameters, preset.description});
    for (const Preset& preset : presets()) {
      if (preset.is_partial) all.push_back({preset.name, preset.parameters, preset.description});
    }
    all.push_back(kVggt);
    return all;
  }();
  return kAll;
}

}  // namespace memfathom

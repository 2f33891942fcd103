#include "estimator/models/registry.h"

#include "estimator/models/blocks/llama/llama.h"
#include "estimator/models/blocks/llama/llama_variant.h"
#include "estimator/models/families/families.h"
#include "estimator/models/vision_language.h"

namespace memfathom {
namespace {

bool is_class_name(const ModelFamily& family) { return family.kind == ModelKind::kDiffusion; }

std::string_view text_or_empty(const Node& config, std::string_view key) {
  const Node* value = config.find(key);
  return value != nullptr && value->is_string() ? std::string_view(value->as_string())
                                                : std::string_view();
}

// Published DiT weights name diffusers' older class for all transformers over images.
std::string_view class_name_of(const Node& config) {
  const std::string_view name = text_or_empty(config, "_class_name");
  const bool is_dit =
      name == "Transformer2DModel" && text_or_empty(config, "norm_type") == "ada_norm_zero";
  return is_dit ? "DiTTransformer2DModel" : name;
}

const ModelFamily* find_row(std::string_view name, bool by_class_name) {
  if (name.empty()) return nullptr;
  for (const ModelFamily& family : model_families()) {
    if (family.name == name && is_class_name(family) == by_class_name) return &family;
  }
  return nullptr;
}

// The registered family with the longest name that `name` begins with.
const ModelFamily* find_similar(std::string_view name) {
  const ModelFamily* found = nullptr;
  for (const ModelFamily& family : model_families()) {
    if (name.starts_with(family.name) &&
        (found == nullptr || family.name.size() > found->name.size()))
      found = &family;
  }
  return found;
}

}  // namespace

std::span<const ModelFamily> model_families() {
  static const std::vector<ModelFamily> kAll = [] {
    std::vector<ModelFamily> all(std::begin(kModelFamilies), std::end(kModelFamilies));
    for (const LlamaVariant& variant : llama_variants())
      all.push_back({variant.type, ModelKind::kLanguage, make_llama, variant.family, {}, {}});
    return all;
  }();
  return kAll;
}

const ModelFamily* find_family(const Node& config) {
  const ModelFamily* by_type = find_row(text_or_empty(config, "model_type"), false);
  if (by_type != nullptr && by_type->kind == ModelKind::kLanguage) return by_type;
  const ModelFamily* by_class = find_row(class_name_of(config), true);
  return by_class != nullptr ? by_class : by_type;
}

const ModelFamily* find_language_family(std::string_view model_type) {
  const ModelFamily* found = find_row(model_type, false);
  return found != nullptr && found->kind == ModelKind::kLanguage ? found : nullptr;
}

FamilyTraits traits_of(const Node& config) {
  const ModelFamily* family = find_family(config);
  if (family == nullptr) family = find_similar(text_or_empty(config, "model_type"));
  if (family == nullptr) family = find_similar(text_or_empty(config, "_class_name"));
  return family != nullptr ? family->traits : FamilyTraits{};
}

bool can_make(const Node& config) {
  const ModelFamily* family = find_family(config);
  return family != nullptr &&
         (family->kind != ModelKind::kMultimodal || is_vision_language(config));
}

std::unique_ptr<Network> make_from_family(Builder& builder, const Node& config,
                                          const ModelSettings& settings,
                                          std::vector<std::string>& assumptions) {
  if (!can_make(config)) return nullptr;
  const ModelFamily* family = find_family(config);
  if (family->kind == ModelKind::kMultimodal)
    return make_vision_language(builder, config, settings, assumptions);
  if (settings.frozen.language) {
    config.refuse(
        "training.freeze names language_model, a part of models that read images, and this model "
        "has no other parts; use model.train: {last: k} or training.lora");
  }
  if (family->kind == ModelKind::kLanguage && settings.library == ModelLibrary::kLitgpt)
    return make_litgpt(builder, config, settings);
  std::unique_ptr<Network> made = family->make(builder, config, settings);
  builder.finish();
  return made;
}

}  // namespace memfathom

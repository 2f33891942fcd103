#include "estimator/models/families/multimodal/vision_language.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <string_view>
#include <utility>

#include "core/error.h"
#include "estimator/models/blocks/config_reader.h"
#include "estimator/models/blocks/llama/llama.h"
#include "estimator/models/blocks/llama/llama_variant.h"
#include "estimator/models/families/multimodal/projected_images.h"
#include "estimator/models/families/multimodal/qwen_images.h"
#include "estimator/models/families/multimodal/text_config.h"

namespace memfathom {
namespace {

struct MultimodalFamily {
  std::string_view type;
  int since;  // the version of transformers that first had it
  bool qwen = false;
};

constexpr MultimodalFamily kFamilies[] = {
    {"gemma3", 450},
    {"llava", 436},
    {"paligemma", 441},
    {"qwen2_vl", 445, true},
    {"qwen2_5_vl", 449, true},
    {"qwen3_vl", 457, true},
    {"qwen3_vl_moe", 457, true},
};

std::string counted(std::int64_t pictures) {
  return fmt::format("{} picture{}", pictures, pictures == 1 ? "" : "s");
}

const MultimodalFamily* family_of(const Node& config) {
  const Node* type = config.find("model_type");
  if (type == nullptr || !type->is_string()) return nullptr;
  const auto* found = std::find_if(
      std::begin(kFamilies), std::end(kFamilies),
      [&](const MultimodalFamily& family) { return family.type == type->as_string(); });
  return found == std::end(kFamilies) ? nullptr : found;
}

bool is_llama_variant(const Node& text) {
  const std::vector<std::string_view> kin = llama_variant_types();
  return std::find(kin.begin(), kin.end(), text.at("model_type").as_string()) != kin.end();
}

void require_room(const ImageSource& images, const ModelSettings& settings) {
  if (images.tokens() == 0 || images.tokens() < settings.sequence_length) return;
  throw Error(
      ErrorKind::kInput,
      fmt::format("{} in a sample take{} {} tokens, and training.sequence_length is {}; make it "
                  "larger, or give training.num_images (0: text alone) or smaller pictures",
                  counted(*settings.num_images), *settings.num_images == 1 ? "s" : "",
                  images.tokens(), settings.sequence_length));
}

std::string image_assumption(const ImageSource& images, const ModelSettings& settings, bool qwen) {
  if (images.tokens() == 0)
    return "text alone: the image tower only lies on the card; training.num_images says how many "
           "pictures a sample shows";
  const bool unsaid = qwen && settings.image_height == 0;
  return fmt::format("{}{} in each sample, {} of its tokens", counted(*settings.num_images),
                     unsaid ? " of 448 x 448 (training.image_size is not given)" : "",
                     images.tokens());
}

}  // namespace

bool is_vision_language(const Node& config) {
  const MultimodalFamily* family = family_of(config);
  if (family == nullptr || (!family->qwen && !has_projected_images(config))) return false;
  const std::optional<Node> text = text_part(config);
  return text && is_llama_variant(*text);
}

std::unique_ptr<Network> make_vision_language(Builder& builder, const Node& config,
                                              const ModelSettings& given,
                                              std::vector<std::string>& assumptions) {
  const MultimodalFamily& family = *family_of(config);
  const Node text = *text_part(config);
  ModelSettings settings = given;
  // Gemma 3 is a language model that can see; the others are used for it.
  if (!settings.num_images) settings.num_images = family.type == "gemma3" ? 0 : 1;
  settings.transformers_version = std::max(settings.transformers_version, family.since);
  std::unique_ptr<ImageSource> images =
      family.qwen
          ? make_qwen_images(builder, config, settings)
          : make_projected_images(builder, config, required_count(text, {"hidden_size"}), settings);
  require_room(*images, settings);
  assumptions.push_back(image_assumption(*images, settings, family.qwen));
  const FrozenScope frozen(builder, settings.frozen.language);
  return make_multimodal_llama(builder, text, settings, std::move(images));
}

}  // namespace memfathom

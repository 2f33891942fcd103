#include "estimator/models/vision_language.h"

#include <fmt/format.h>

#include <optional>
#include <utility>

#include "core/error.h"
#include "estimator/models/blocks/config_reader.h"
#include "estimator/models/blocks/llama/llama.h"
#include "estimator/models/blocks/llama/llama_variant.h"
#include "estimator/models/registry.h"
#include "estimator/models/text_config.h"

namespace memfathom {
namespace {

std::string counted(std::int64_t images) {
  return fmt::format("{} image{}", images, images == 1 ? "" : "s");
}

void require_room(const ImageSource& images, const ModelSettings& settings) {
  if (images.tokens() == 0 || images.tokens() < settings.sequence_length) return;
  throw Error(
      ErrorKind::kInput,
      fmt::format("{} in a sample take{} {} tokens, and training.sequence_length is {}; make it "
                  "larger, or give training.num_images (0: text alone) or smaller images",
                  counted(*settings.num_images), *settings.num_images == 1 ? "s" : "",
                  images.tokens(), settings.sequence_length));
}

std::string image_assumption(const ImageSource& images, const ModelSettings& settings,
                             bool any_size) {
  if (images.tokens() == 0)
    return "text only: the vision tower is loaded but not run; set training.num_images for the "
           "number of images per sample";
  const bool unsaid = any_size && settings.image_height == 0;
  return fmt::format("{}{} in each sample, {} of its tokens", counted(*settings.num_images),
                     unsaid ? " of 448 x 448 (training.image_size is not given)" : "",
                     images.tokens());
}

}  // namespace

bool is_vision_language(const Node& config) {
  const ModelFamily* family = find_family(config);
  if (family == nullptr || family->kind != ModelKind::kMultimodal) return false;
  if (family->images.can_read != nullptr && !family->images.can_read(config)) return false;
  const std::optional<Node> text = text_part(config);
  return text && is_llama_variant(*text);
}

std::unique_ptr<Network> make_vision_language(Builder& builder, const Node& config,
                                              const ModelSettings& given,
                                              std::vector<std::string>& assumptions) {
  const ModelFamily& family = *find_family(config);
  const Node text = *text_part(config);
  ModelSettings settings = given;
  if (!settings.num_images) settings.num_images = family.images.usual_count;
  settings.transformers = settings.transformers.at_least(family.traits.since);
  std::unique_ptr<ImageSource> images =
      family.images.make(builder, config, required_count(text, {"hidden_size"}), settings);
  require_room(*images, settings);
  assumptions.push_back(image_assumption(*images, settings, family.images.any_size));
  const FrozenScope frozen(builder, settings.frozen.language);
  return make_multimodal_llama(builder, text, settings, std::move(images));
}

}  // namespace memfathom

// Projected images: a CLIP or SigLIP tower and the projector behind it: LLaVA, Gemma 3, PaliGemma.
#include <cmath>
#include <optional>
#include <string>
#include <utility>

#include "estimator/models/blocks/config_reader.h"
#include "estimator/models/blocks/image_tower.h"
#include "estimator/models/blocks/norm_layer.h"
#include "estimator/models/families/families.h"
#include "kernels/framework/ops/arithmetic.h"
#include "kernels/framework/ops/matmul.h"
#include "kernels/framework/ops/pool.h"
#include "kernels/framework/ops/views.h"

namespace memfathom {
namespace {

std::string type_of(const Node& config) {
  const Node* type = find_any(config, {"model_type"});
  return type != nullptr && type->is_string() ? type->as_string() : std::string();
}

// The tower is made for one size; a processor brings every image to it.
ModelSettings of_own_size(ModelSettings settings) {
  settings.image_height = settings.image_width = 0;
  return settings;
}

class ProjectedImages : public ImageSource {
 public:
  ProjectedImages(Builder& builder, const Node& config, const ModelSettings& settings)
      : images_(settings.num_images.value_or(0)) {
    const PathScope scope(builder, "model.vision_tower");
    const FrozenScope frozen(builder, settings.frozen.vision);
    tower_.emplace(builder, config.at("vision_config"), of_own_size(settings));
  }

  void load(std::int64_t samples) final {
    if (images_ > 0) tower_->load(samples * images_);
  }
  std::int64_t tokens() const final { return images_ * tokens_per_sample(); }

 protected:
  const ImageTower& tower() const { return *tower_; }
  virtual std::int64_t tokens_per_sample() const = 0;

 private:
  std::int64_t images_;
  std::optional<ImageTower> tower_;
};

// The projector's own scope.
struct ProjectorScope {
  ProjectorScope(Builder& builder, const ModelSettings& settings)
      : path(builder, "model.multi_modal_projector"), frozen(builder, settings.frozen.projector) {}
  PathScope path;
  FrozenScope frozen;
};

class LlavaImages final : public ProjectedImages {
 public:
  LlavaImages(Builder& builder, const Node& config, std::int64_t hidden,
              const ModelSettings& settings)
      : ProjectedImages(builder, config, settings) {
    const Node* layer = find_any(config, {"vision_feature_layer"});
    if (layer != nullptr) {
      if (!layer->is_int()) layer->refuse("only one layer's features are built, not a list's");
      layer_ = layer->as_int(-tower().config().layers - 1, tower().config().layers);
    }
    const Node* select = find_any(config, {"vision_feature_select_strategy"});
    drops_first_ = select == nullptr || select->as_string() == "default";
    const ProjectorScope scope(builder, settings);
    const LinearOptions biased{.bias = flag_or(config, {"multimodal_projector_bias"}, true)};
    activation_ = activation_or(config, {"projector_hidden_act"}, "gelu");
    first_ = make_linear(builder, "linear_1", tower().config().hidden, hidden, biased);
    second_ = make_linear(builder, "linear_2", hidden, hidden, biased);
  }

  ImageFeatures show() override {
    TowerOutput seen = tower()(layer_);
    ImageFeatures shown;
    Tensor x = seen.chosen;
    if (drops_first_) x = slice(x, 1, 1, x.size(1));
    x = second_(activate(activation_, first_(x)));
    shown.held = {seen.tokens, seen.pooled, seen.chosen, x};
    // torch.cat(list(features)), also of one
    shown.features = cat(unbind(x, 0), 0);
    return shown;
  }

 private:
  std::int64_t tokens_per_sample() const override {
    return tower().tokens() - (drops_first_ ? 1 : 0);
  }

  std::int64_t layer_ = -2;
  bool drops_first_ = true;
  Activation activation_ = Activation::kGelu;
  Linear first_, second_;
};

class PaliGemmaImages final : public ProjectedImages {
 public:
  PaliGemmaImages(Builder& builder, const Node& config, std::int64_t hidden,
                  const ModelSettings& settings)
      : ProjectedImages(builder, config, settings) {
    const ProjectorScope scope(builder, settings);
    const std::int64_t width = count_or(config.at("vision_config"), {"projection_dim"}, hidden);
    linear_ = make_linear(builder, "linear", tower().config().hidden, width);
  }

  ImageFeatures show() override {
    TowerOutput seen = tower()();
    ImageFeatures shown;
    shown.features = linear_(seen.tokens);
    shown.held = {seen.tokens, seen.pooled};
    return shown;
  }
  bool is_bidirectional() const override { return true; }

 private:
  std::int64_t tokens_per_sample() const override { return tower().tokens(); }

  Linear linear_;
};

class GemmaImages final : public ProjectedImages {
 public:
  GemmaImages(Builder& builder, const Node& config, std::int64_t hidden,
              const ModelSettings& settings)
      : ProjectedImages(builder, config, settings) {
    const std::int64_t tokens = count_or(config, {"mm_tokens_per_image"}, 256);
    side_ = std::llround(std::floor(std::sqrt(static_cast<double>(tokens))));
    if (side_ > tower().patches_per_side())
      config.at("mm_tokens_per_image").refuse("an image has fewer patches than that");
    const ProjectorScope scope(builder, settings);
    weight_ = builder.parameter("mm_input_projection_weight", {tower().config().hidden, hidden});
    norm_ = make_norm(builder, "mm_soft_emb_norm", NormKind::kRmsOne, tower().config().hidden);
  }

  ImageFeatures show() override {
    TowerOutput seen = tower()();
    const std::int64_t patches = tower().patches_per_side();
    const std::int64_t kernel = patches / side_;
    Tensor x = transpose(seen.tokens, 1, 2);
    x = reshape(x, {x.size(0), x.size(1), patches, patches});
    const Tensor reshaped = x;  // the projector's names, until it returns
    const Tensor pooled = average_pool(x, {{kernel, kernel}, {kernel, kernel}, {0, 0}, false});
    const Tensor normed = norm_(transpose(flatten(pooled, 2), 1, 2));
    ImageFeatures shown;
    shown.features = matmul(normed, weight_);
    shown.held = {seen.tokens, seen.pooled};
    return shown;
  }
  bool is_bidirectional() const override { return true; }

 private:
  std::int64_t tokens_per_sample() const override { return side_ * side_; }

  std::int64_t side_ = 16;
  Tensor weight_;
  NormLayer norm_;
};

}  // namespace

// Whether the tower in `config` is one of those.
bool has_projected_images(const Node& config) {
  const Node* tower = find_any(config, {"vision_config"});
  if (tower == nullptr || !tower->is_map()) return false;
  const std::string kind = type_of(*tower);
  return kind == "clip_vision_model" || kind == "siglip_vision_model";
}

// `config` is the whole model's, `hidden` the language model's width.
std::unique_ptr<ImageSource> make_projected_images(Builder& builder, const Node& config,
                                                   std::int64_t hidden,
                                                   const ModelSettings& settings) {
  const NonLanguageScope beside(builder);
  const std::string type = type_of(config);
  if (type == "gemma3") return std::make_unique<GemmaImages>(builder, config, hidden, settings);
  if (type == "paligemma")
    return std::make_unique<PaliGemmaImages>(builder, config, hidden, settings);
  return std::make_unique<LlavaImages>(builder, config, hidden, settings);
}

}  // namespace memfathom

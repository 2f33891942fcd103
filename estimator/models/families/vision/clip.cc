// CLIP: transformers' text and vision towers, and the two trained against each other.
#include <optional>
#include <string>
#include <utility>

#include "estimator/models/blocks/config_reader.h"
#include "estimator/models/blocks/image_tower.h"
#include "estimator/models/blocks/text_tower.h"
#include "estimator/models/blocks/tower_network.h"
#include "estimator/models/families/families.h"
#include "kernels/framework/ops/arithmetic.h"
#include "kernels/framework/ops/loss.h"
#include "kernels/framework/ops/matmul.h"
#include "kernels/framework/ops/views.h"

namespace memfathom {
namespace {

// x / sqrt(sum(x^2))
Tensor normalized(const Tensor& x) {
  Tensor norm = pow_scalar(x, 2);
  norm = sum(norm, {-1}, true);
  norm = pow_scalar(norm, 0.5);
  return div(x, norm);
}

class Clip final : public Network {
 public:
  Clip(Builder& builder, const Node& config, const ModelSettings& settings)
      : session_(builder.session()), settings_(settings) {
    const Node none = Node::map();
    const auto part = [&](std::string_view name) -> const Node& {
      const Node* found = find_any(config, {name});
      return found != nullptr ? *found : none;
    };
    text_.emplace(builder, part("text_config"), settings);
    vision_.emplace(builder, part("vision_config"), settings);
    const std::int64_t width = count_or(config, {"projection_dim"}, 512);
    const HeadScope head(builder);
    const LinearOptions options{.bias = false, .head = true};
    vision_projection_ =
        make_linear(builder, "visual_projection", vision_->config().hidden, width, options);
    text_projection_ =
        make_linear(builder, "text_projection", text_->config().hidden, width, options);
    scale_ = builder.parameter("logit_scale", {});
  }

  void load_batch(std::int64_t size, bool) override {
    text_->load(size);
    vision_->load(size);
  }

  Tensor loss(Tensor* output) override {
    Parts parts;
    const Tensor logits = compared(parts);
    const ComponentScope scope(session_, Component::kLogitsLoss);
    if (output != nullptr) *output = logits;
    const Tensor captions = contrasted(logits);
    const Tensor images = contrasted(transpose(logits, 0, 1));
    Tensor result = div_scalar(add(captions, images), 2);
    if (output != nullptr) held_ = std::move(parts);
    return result;
  }

  Tensor forward() override {
    Parts parts;
    return compared(parts);
  }

  void end_generation() override { held_ = {}; }

 private:
  // What is in the output object beside the logits.
  struct Parts {
    TowerOutput image, text;
    Tensor pictures, words;
  };

  Tensor compared(Parts& parts) const {
    parts.image = (*vision_)();
    parts.image.pooled = vision_projection_(parts.image.pooled);
    parts.text = (*text_)();
    parts.text.pooled = text_projection_(parts.text.pooled);
    const ComponentScope scope(session_, Component::kLogitsLoss);
    parts.pictures = normalized(parts.image.pooled);
    parts.words = normalized(parts.text.pooled);
    const Tensor logits = matmul(parts.words, transpose(parts.pictures, 0, 1));
    const Tensor factor = exp(scale_);
    return mul(logits, factor);
  }

  Tensor contrasted(const Tensor& logits) const {
    const Tensor own = session_.empty({logits.size(0)}, DType::kInt64);
    return cross_entropy(logits, own);
  }

  Session& session_;
  ModelSettings settings_;
  std::optional<TextTower> text_;
  std::optional<ImageTower> vision_;
  Linear vision_projection_, text_projection_;
  Tensor scale_;
  Parts held_;  // of an output that the loop holds
};

// How wide a tower's projection is; 0 where `architectures` names a tower without one.
std::int64_t projection_of(const Node& config) {
  return is_architecture(config, "WithProjection") ? count_or(config, {"projection_dim"}, 512) : 0;
}

}  // namespace

// model_type clip (both towers, contrastive loss), clip_text_model or clip_vision_model. A tower on
// its own has a projection where `architectures` says WithProjection. Texts have
// training.sequence_length tokens, by default as many as there are positions.
std::unique_ptr<Network> make_clip(Builder& builder, const Node& config,
                                   const ModelSettings& settings) {
  const std::string& type = config.at("model_type").as_string();
  const auto alone = [&](auto tower) -> std::unique_ptr<Network> {
    return std::make_unique<TowerNetwork<decltype(tower)>>(builder, settings, std::move(tower),
                                                           projection_of(config));
  };
  if (type == "clip_text_model") return alone(TextTower(builder, config, settings));
  if (type == "clip_vision_model") return alone(ImageTower(builder, config, settings));
  return std::make_unique<Clip>(builder, config, settings);
}

}  // namespace memfathom

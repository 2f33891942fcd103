// SigLIP: transformers' text and vision towers, trained against each other pair by pair.
#include <string>
#include <utility>

#include "estimator/models/blocks/config_reader.h"
#include "estimator/models/blocks/image_tower.h"
#include "estimator/models/blocks/losses.h"
#include "estimator/models/blocks/text_tower.h"
#include "estimator/models/blocks/tower_network.h"
#include "estimator/models/families/families.h"
#include "kernels/framework/layers/batch_scope.h"
#include "kernels/framework/ops/activation.h"
#include "kernels/framework/ops/arithmetic.h"
#include "kernels/framework/ops/matmul.h"
#include "kernels/framework/ops/views.h"
#include "kernels/framework/tensor/recording.h"

namespace memfathom {
namespace {

// x / x.norm(dim=-1, keepdim=True): one kernel, which keeps x and the result.
Tensor normalized(const Tensor& x) {
  Session& session = x.session();
  Recording tape(session, "norm", {&x});
  Tensor norm = session.empty({x.size(0), 1}, x.dtype());
  tape.save(x);
  tape.finish(norm, [](Backward& b) {
    const Tensor kept = b.saved(0);
    b.give(0, b.session().empty(kept.shape(), kept.dtype()));
  });
  return div(x, norm);
}

// -sum(logsigmoid(signs * logits)).mean(): a pair that belongs together against one that does not.
Tensor sigmoid_loss(const Tensor& logits) {
  Session& session = logits.session();
  const Tensor eye = session.empty(logits.shape(), DType::kFp32);
  Tensor signs;
  {
    const Tensor ones = session.empty(logits.shape(), logits.dtype());
    const Tensor doubled = session.empty(logits.shape(), DType::kFp32);
    signs = session.empty(logits.shape(), DType::kFp32);
  }
  // logsigmoid keeps its input, as softplus does.
  const Tensor likelihood = activate(Activation::kSoftplus, mul(signs, logits));
  const Tensor negative = neg(sum(likelihood, {-1}, false));
  return mean_all(negative);
}

// A part of the config, called what the towers go by.
Node part_of(const Node& config, std::string_view name, const char* type) {
  const Node* found = find_any(config, {name});
  Node part = found != nullptr ? *found : Node::map();
  if (part.find("model_type") == nullptr) part.set("model_type", Node::string(type));
  return part;
}

Node vision_part(const Node& config) {
  return part_of(config, "vision_config", "siglip_vision_model");
}

class Siglip final : public Network {
 public:
  Siglip(Builder& builder, const Node& config, const ModelSettings& settings)
      : session_(builder.session()),
        text_(builder, part_of(config, "text_config", "siglip_text_model"), settings,
              TextTowerKind::kSiglip),
        vision_(builder, vision_part(config), settings) {
    if (vision_.config().hidden != text_.width())
      config.refuse("its two towers end in vectors of different widths");
    const HeadScope head(builder);
    scale_ = builder.parameter("logit_scale", {1});
    bias_ = builder.parameter("logit_bias", {1});
  }

  void load_batch(std::int64_t size, bool) override {
    text_.load(size);
    vision_.load(size);
  }

  Tensor loss(Tensor* output) override {
    Parts parts;
    const Tensor logits = compared(parts);
    const ComponentScope scope(session_, Component::kLogitsLoss);
    Tensor result = sigmoid_loss(logits);
    if (output != nullptr) {
      *output = logits;
      held_ = std::move(parts);
    }
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
    parts.image = vision_();
    parts.text = text_();
    const ComponentScope scope(session_, Component::kLogitsLoss);
    parts.pictures = normalized(parts.image.pooled);
    parts.words = normalized(parts.text.pooled);
    const Tensor logits = matmul(parts.words, transpose(parts.pictures, 0, 1));
    return add(mul(logits, exp(scale_)), bias_);
  }

  Session& session_;
  TextTower text_;
  ImageTower vision_;
  Tensor scale_, bias_;
  Parts held_;  // of an output that the loop holds
};

// The vision tower with classes over the mean of its tokens.
class SiglipClassifier final : public Network {
 public:
  SiglipClassifier(Builder& builder, const Node& config, const ModelSettings& settings)
      : session_(builder.session()),
        settings_(settings),
        vision_(builder, vision_part(config), settings) {
    if (settings_.loss == LossKind::kModel) settings_.loss = LossKind::kCrossEntropy;
    const HeadScope head(builder);
    classifier_ = make_linear(builder, "classifier", vision_.config().hidden,
                              label_count(config, 2), {.head = true});
  }

  void load_batch(std::int64_t size, bool targets) override {
    const BatchScope scope(session_, {&target_});
    vision_.load(size);
    if (targets)
      target_ = make_target(session_, settings_.loss, {size, classifier_.bias.size(0)},
                            settings_.precision);
  }

  Tensor loss(Tensor* output) override {
    const Tensor logits = forward();
    if (output != nullptr) *output = logits;
    return apply_loss(settings_.loss, logits, target_, settings_.label_smoothing);
  }

  bool script_holds_output() const override { return true; }

  Tensor forward() override {
    const TowerOutput seen = vision_();
    return classifier_(mean(seen.tokens, {1}, false));
  }

 private:
  Session& session_;
  ModelSettings settings_;
  ImageTower vision_;
  Linear classifier_;
  Tensor target_;
};

}  // namespace

// model_type siglip (both towers with the sigmoid loss, or the image classifier where
// `architectures` names it), siglip_text_model or siglip_vision_model. SigLIP 2 of a fixed image
// size is the same network under the same names.
std::unique_ptr<Network> make_siglip(Builder& builder, const Node& config,
                                     const ModelSettings& settings) {
  const std::string& type = config.at("model_type").as_string();
  if (type == "siglip_text_model")
    return std::make_unique<TowerNetwork<TextTower>>(
        builder, settings, TextTower(builder, config, settings, TextTowerKind::kSiglip));
  if (type == "siglip_vision_model")
    return std::make_unique<TowerNetwork<ImageTower>>(builder, settings,
                                                      ImageTower(builder, config, settings));
  if (is_architecture(config, "ForImageClassification"))
    return std::make_unique<SiglipClassifier>(builder, config, settings);
  return std::make_unique<Siglip>(builder, config, settings);
}

}  // namespace memfathom

#include "estimator/models/vision/clip.h"

#include <fmt/format.h>

#include <optional>
#include <string>
#include <utility>

#include "estimator/models/language/config_reader.h"
#include "estimator/models/language/gather_rows.h"
#include "estimator/models/language/masks.h"
#include "estimator/models/losses.h"
#include "estimator/models/vision/image_tower.h"
#include "kernels/layers/batch_scope.h"
#include "kernels/ops/arithmetic.h"
#include "kernels/ops/embedding.h"
#include "kernels/ops/loss.h"
#include "kernels/ops/matmul.h"
#include "kernels/ops/views.h"

namespace memfathom {
namespace {

class TextTower {
 public:
  TextTower(Builder& builder, const Node& config, const ModelSettings& settings)
      : session_(builder.session()), settings_(settings) {
    plan_ =
        read_tower(config, {.hidden = 512, .layers = 12, .heads = 8, .ffn = 2048, .causal = true},
                   "quick_gelu");
    const std::int64_t vocabulary = count_or(config, {"vocab_size"}, 49408, kMostTokens);
    positions_ = count_or(config, {"max_position_embeddings"}, 77, kMostTokens);
    if (settings.sequence_length > positions_) {
      config.refuse(fmt::format(
          "it has {} positions, and training.sequence_length is {}; CLIP's texts are cut there",
          positions_, settings.sequence_length));
    }
    const PathScope scope(builder, "text_model");
    words_ = builder.parameter("embeddings.token_embedding.weight", {vocabulary, plan_.hidden});
    position_table_ =
        builder.parameter("embeddings.position_embedding.weight", {positions_, plan_.hidden});
    position_ids_ =
        builder.buffer("embeddings.position_ids", {1, positions_}, DType::kInt64, false);
    layers_ = make_encoder_layers(builder, "encoder.layers", plan_, settings);
    norm_ = make_layer_norm(builder, "final_layer_norm", plan_.hidden);
  }

  const EncoderPlan& plan() const { return plan_; }

  std::int64_t tokens() const {
    return settings_.sequence_length > 0 ? settings_.sequence_length : positions_;
  }

  void load(std::int64_t size) {
    const BatchScope scope(session_, {&ids_, &padding_});
    ids_ = session_.zeros({size, tokens()}, DType::kInt64);
    if (settings_.padding_mask) padding_ = session_.zeros({size, tokens()}, DType::kInt64);
  }

  Seen operator()() const {
    Tensor embedding = embedded();  // named until the tower returns
    prepare_embeddings(settings_, embedding);
    Tensor hidden = embedding;
    Pass pass;
    pass.mask_is_positional = true;
    MaskCase mask;
    mask.batch = ids_.size(0);
    mask.queries = mask.keys = ids_.size(1);
    mask.positions = false;
    mask.padding = padding_;
    mask.eager = settings_.attention == AttentionImplementation::kEager;
    mask.dtype = hidden.dtype();
    pass.mask = make_mask(session_, mask);
    for (const EncoderLayer& layer : layers_) hidden = run_block(settings_, layer, hidden, pass);
    Seen seen;
    seen.tokens = norm_(hidden);
    // The position of the end token, found among the ids.
    const Tensor rows = session_.empty({ids_.size(0)}, DType::kInt64);
    {
      const Tensor narrow = session_.empty(ids_.shape(), DType::kInt32);
      const Tensor equal = session_.empty(ids_.shape(), DType::kBool);
      const Tensor counted = session_.empty(ids_.shape(), DType::kInt32);
    }
    seen.pooled = gather_rows(view(seen.tokens, {-1, plan_.hidden}), rows);
    return seen;
  }

 private:
  Tensor embedded() const {
    const Tensor words = embedding(words_, ids_);
    const Tensor positions = embedding(position_table_, slice(position_ids_, 1, 0, ids_.size(1)));
    return add(words, positions);
  }

  Session& session_;
  ModelSettings settings_;
  EncoderPlan plan_;
  std::int64_t positions_ = 0;
  Tensor words_, position_table_, position_ids_;
  std::vector<EncoderLayer> layers_;
  LayerNorm norm_;
  Tensor ids_, padding_;
};

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
        make_linear(builder, "visual_projection", vision_->plan().hidden, width, options);
    text_projection_ =
        make_linear(builder, "text_projection", text_->plan().hidden, width, options);
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
    Seen image, text;
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

bool projects(const Node& config) {
  const Node* named = config.find("architectures");
  if (named == nullptr || !named->is_list() || named->items().empty()) return false;
  const Node& first = named->items()[0];
  return first.is_string() && first.as_string().ends_with("WithProjection");
}

// One tower alone, as diffusion models use them; its result is its tokens, or the projection.
template <typename Tower>
class ClipTower final : public Network {
 public:
  ClipTower(Builder& builder, const Node& config, const ModelSettings& settings)
      : session_(builder.session()), settings_(settings), tower_(builder, config, settings) {
    if (settings_.loss == LossKind::kModel) settings_.loss = LossKind::kMean;
    if (!projects(config)) return;
    const HeadScope head(builder);
    projection_ =
        make_linear(builder, "projection", tower_.plan().hidden,
                    count_or(config, {"projection_dim"}, 512), {.bias = false, .head = true});
  }

  void load_batch(std::int64_t size, bool targets) override {
    const BatchScope scope(session_, {&target_});
    tower_.load(size);
    if (!targets) return;
    const Shape shape = projection_.weight ? Shape{size, projection_.weight.size(0)}
                                           : Shape{size, tower_.tokens(), tower_.plan().hidden};
    target_ = make_target(session_, settings_.loss, shape, settings_.precision);
  }

  Tensor loss(Tensor* output) override {
    const Tensor result = forward();
    if (output != nullptr) *output = result;
    return apply_loss(settings_.loss, result, target_, settings_.label_smoothing);
  }

  Tensor forward() override {
    const Seen seen = tower_();
    return projection_.weight ? projection_(seen.pooled) : seen.tokens;
  }

 private:
  Session& session_;
  ModelSettings settings_;
  Tower tower_;
  Linear projection_;
  Tensor target_;
};

}  // namespace

std::unique_ptr<Network> make_clip(Builder& builder, const Node& config,
                                   const ModelSettings& settings) {
  const std::string& type = config.at("model_type").as_string();
  if (type == "clip_text_model")
    return std::make_unique<ClipTower<TextTower>>(builder, config, settings);
  if (type == "clip_vision_model")
    return std::make_unique<ClipTower<ImageTower>>(builder, config, settings);
  return std::make_unique<Clip>(builder, config, settings);
}

}  // namespace memfathom

// T5: an encoder and a decoder with relative position biases; or the encoder alone, as text
// encoders use it.
#include <cmath>
#include <optional>

#include "estimator/models/blocks/language_loss.h"
#include "estimator/models/blocks/losses.h"
#include "estimator/models/families/families.h"
#include "estimator/models/families/language/t5/t5_stack.h"
#include "kernels/framework/layers/batch_scope.h"
#include "kernels/framework/ops/arithmetic.h"

namespace memfathom {
namespace {

class T5 final : public Network {
 public:
  T5(Builder& builder, const ModelSettings& settings, const T5Config& cfg)
      : session_(builder.session()), settings_(settings), config_(cfg) {
    require_sequence_length(settings_);
    shared_ = make_shared_table(builder);
    encoder_.emplace(builder, "encoder", cfg, settings, false);
    if (cfg.encoder_only) return;
    decoder_.emplace(builder, "decoder", cfg, settings, true);
    const HeadScope scope(builder);
    if (cfg.tied) {
      head_.weight = shared_;
    } else {
      head_ = make_linear(builder, "lm_head", cfg.hidden, cfg.vocabulary,
                          {.bias = false, .head = true});
    }
  }

  void load_batch(std::int64_t size, bool targets) override {
    const BatchScope scope(session_, {&ids_, &labels_, &padding_});
    ids_ = session_.zeros({size, settings_.sequence_length}, DType::kInt64);
    if (settings_.padding_mask)
      padding_ = session_.zeros({size, settings_.sequence_length}, DType::kInt64);
    if (targets || decoder_) labels_ = session_.zeros({size, target_length()}, DType::kInt64);
  }

  Tensor loss(Tensor* output) override {
    const Tensor encoded = (*encoder_)(shared_, ids_, {}, padding_);
    const Tensor result = decoder_ ? decoded(encoded) : encoded;
    // The decoder's own result stays with its output while the scaled one, which has a name too,
    // goes through the head.
    const Tensor sequence = decoder_ ? scaled(result) : result;
    const ComponentScope scope(session_, Component::kLogitsLoss);
    const Tensor logits = decoder_ ? head_(sequence) : sequence;
    const bool own =
        settings_.loss == LossKind::kModel || settings_.loss == LossKind::kCrossEntropy;
    Tensor value;
    if (own && decoder_ && trainer_smooths_labels(settings_)) {
      value = smoothed_loss(logits, labels_, false);
    } else if (own) {
      value = decoder_ ? token_loss(logits, labels_) : mean_all(logits);
    } else {
      value = apply_loss(settings_.loss, logits, labels_, settings_.label_smoothing);
    }
    if (output != nullptr) {
      *output = logits;
      if (decoder_) held_encoding_ = encoded;
    }
    return value;
  }

  Tensor forward() override {
    Tensor encoded = (*encoder_)(shared_, ids_, {}, padding_);
    if (!decoder_) return encoded;
    const Tensor result = decoded(encoded);
    const Tensor sequence = scaled(result);
    const ComponentScope scope(session_, Component::kLogitsLoss);
    return head_(sequence);
  }

  void end_generation() override { held_encoding_.reset(); }

 private:
  std::int64_t target_length() const {
    return settings_.target_sequence_length > 0 ? settings_.target_sequence_length
                                                : settings_.sequence_length;
  }

  Tensor make_shared_table(Builder& builder) const {
    const Shape shape{config_.vocabulary, config_.hidden};
    if (!config_.tied || config_.encoder_only) return builder.parameter("shared.weight", shape);
    const HeadScope head(builder);
    return builder.parameter("shared.weight", shape);
  }

  Tensor decoded(const Tensor& encoded) const {
    const Tensor ids = shifted_right(labels_);
    return (*decoder_)(shared_, ids, encoded, padding_);
  }

  Tensor scaled(const Tensor& hidden) const {
    return config_.scales_output
               ? mul_scalar(hidden, 1 / std::sqrt(static_cast<double>(config_.hidden)))
               : hidden;
  }

  Session& session_;
  ModelSettings settings_;
  T5Config config_;
  Tensor shared_;
  std::optional<T5Stack> encoder_, decoder_;
  Linear head_;
  Tensor ids_, labels_, padding_;
  Tensor held_encoding_;  // the encoder's result is part of an output that the loop holds
};

}  // namespace

// "architectures": ["T5EncoderModel"] builds the encoder alone.
std::unique_ptr<Network> make_t5(Builder& builder, const Node& config,
                                 const ModelSettings& settings) {
  return std::make_unique<T5>(builder, settings, read_t5_config(config, settings));
}

}  // namespace memfathom

#include "estimator/models/blocks/text_tower.h"

#include <fmt/format.h>

#include "estimator/models/blocks/config_reader.h"
#include "estimator/models/blocks/gather_rows.h"
#include "estimator/models/blocks/masks.h"
#include "kernels/framework/layers/batch_scope.h"
#include "kernels/framework/ops/arithmetic.h"
#include "kernels/framework/ops/embedding.h"
#include "kernels/framework/ops/views.h"

namespace memfathom {
namespace {

struct TextDefaults {
  EncoderConfig cfg;
  std::string_view activation;
  std::int64_t vocabulary, positions;
};

TextDefaults defaults_of(TextTowerKind kind) {
  if (kind == TextTowerKind::kSiglip)
    return {
        {.hidden = 768, .layers = 12, .heads = 12, .ffn = 3072}, "gelu_pytorch_tanh", 32000, 64};
  return {{.hidden = 512, .layers = 12, .heads = 8, .ffn = 2048, .causal = true},
          "quick_gelu",
          49408,
          77};
}

}  // namespace

TextTower::TextTower(Builder& builder, const Node& config, const ModelSettings& settings,
                     TextTowerKind kind)
    : session_(builder.session()), settings_(settings) {
  const TextDefaults defaults = defaults_of(kind);
  config_ = read_tower(config, defaults.cfg, defaults.activation);
  const std::int64_t vocabulary = count_or(config, {"vocab_size"}, defaults.vocabulary, kMaxTokens);
  positions_ = count_or(config, {"max_position_embeddings"}, defaults.positions, kMaxTokens);
  if (settings.sequence_length > positions_) {
    config.refuse(fmt::format(
        "it has {} positions, and training.sequence_length is {}; its texts are cut there",
        positions_, settings.sequence_length));
  }
  const PathScope scope(builder, "text_model");
  words_ = builder.parameter("embeddings.token_embedding.weight", {vocabulary, config_.hidden});
  position_table_ =
      builder.parameter("embeddings.position_embedding.weight", {positions_, config_.hidden});
  position_ids_ = builder.buffer("embeddings.position_ids", {1, positions_}, DType::kInt64, false);
  layers_ = make_encoder_layers(builder, "encoder.layers", config_, settings);
  norm_ = make_layer_norm(builder, "final_layer_norm", config_.hidden);
  if (kind == TextTowerKind::kSiglip)
    head_ = make_linear(builder, "head", config_.hidden,
                        count_or(config, {"projection_size"}, config_.hidden));
}

std::int64_t TextTower::tokens() const {
  return settings_.sequence_length > 0 ? settings_.sequence_length : positions_;
}

void TextTower::load(std::int64_t size) {
  const BatchScope scope(session_, {&ids_, &padding_});
  ids_ = session_.zeros({size, tokens()}, DType::kInt64);
  if (settings_.padding_mask) padding_ = session_.zeros({size, tokens()}, DType::kInt64);
}

TowerOutput TextTower::operator()() const {
  Tensor embedding = embedded();  // named until the tower returns
  prepare_embeddings(settings_, embedding);
  Tensor hidden = embedding;
  Pass pass;
  pass.mask_is_positional = true;
  MaskCase mask;
  mask.batch = ids_.size(0);
  mask.queries = mask.keys = ids_.size(1);
  mask.causal = config_.causal;
  mask.positions = false;
  mask.padding = padding_;
  mask.eager = settings_.attention == AttentionImplementation::kEager;
  mask.dtype = hidden.dtype();
  pass.mask = make_mask(session_, mask);
  for (const EncoderLayer& layer : layers_) hidden = run_block(settings_, layer, hidden, pass);
  TowerOutput seen;
  seen.tokens = norm_(hidden);
  seen.pooled =
      head_.weight ? head_(select(seen.tokens, 1, ids_.size(1) - 1)) : end_token(seen.tokens);
  return seen;
}

// CLIP's: where the end token stands is found among the ids.
Tensor TextTower::end_token(const Tensor& tokens) const {
  const Tensor rows = session_.empty({ids_.size(0)}, DType::kInt64);
  {
    const Tensor narrow = session_.empty(ids_.shape(), DType::kInt32);
    const Tensor equal = session_.empty(ids_.shape(), DType::kBool);
    const Tensor counted = session_.empty(ids_.shape(), DType::kInt32);
  }
  return gather_rows(view(tokens, {-1, config_.hidden}), rows);
}

Tensor TextTower::embedded() const {
  const Tensor words = embedding(words_, ids_);
  const Tensor positions = embedding(position_table_, slice(position_ids_, 1, 0, ids_.size(1)));
  return add(words, positions);
}

}  // namespace memfathom

#include "estimator/models/blocks/llama/llama.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "estimator/models/blocks/block_replays.h"
#include "estimator/models/blocks/causal_model.h"
#include "estimator/models/blocks/llama/llama_block.h"
#include "estimator/models/blocks/llama/llama_config.h"
#include "estimator/models/blocks/llama/llama_variant.h"
#include "estimator/models/blocks/norm_layer.h"
#include "estimator/models/blocks/sequence_shards.h"
#include "kernels/framework/ops/arithmetic.h"
#include "kernels/framework/ops/embedding.h"
#include "kernels/framework/ops/loss.h"
#include "kernels/framework/ops/views.h"

namespace memfathom {
namespace {

// All that differs between the blocks of a model beside their parameters.
std::uint32_t kind_of(const LlamaLayer& layer) {
  return (layer.windowed ? 1U : 0U) | (layer.rotated ? 2U : 0U) | (layer.sparse ? 4U : 0U);
}

class Llama final : public CausalModel {
 public:
  Llama(Builder& builder, const Node& config, const ModelSettings& settings, LlamaConfig cfg,
        std::unique_ptr<ImageSource> images)
      : CausalModel(builder, settings, cfg.layers), config_(cfg), images_(std::move(images)) {
    config_.residual_dropout = dropout_or(config_.residual_dropout);
    config_.mlp_dropout = dropout_or(config_.mlp_dropout);
    config_.embedding_dropout = dropout_or(config_.embedding_dropout);
    const std::vector<LlamaLayer> layers = read_llama_layers(config, config_);
    has_windows_ = config_.mixes_windows && std::any_of(layers.begin(), layers.end(),
                                                        [](const auto& l) { return l.windowed; });
    AttentionStyle style = attention_style(config_.attention_dropout, config_.head_size);
    if (config_.attention_scale > 0) style.scale = config_.attention_scale;
    style.softcap = config_.attention_softcap;
    {
      const PathScope scope(builder, images_ ? "model.language_model" : "model");
      embedding_ = make_embedding(builder, "embed_tokens", config, config_.vocabulary,
                                  config_.hidden, config_.tied_by_default);
      if (config_.scaled_embedding_buffer)
        scale_ = builder.buffer("embed_tokens.embed_scale", {}, DType::kFp32, false);
      blocks_.reserve(static_cast<std::size_t>(config_.layers));
      for (std::int64_t i = 0; i < config_.layers; ++i) {
        const PathScope block(builder, "layers", i);
        const BlockScope counted(builder, i, config_.layers, config_.hidden);
        const auto index = static_cast<std::size_t>(i);
        replays_.add(builder, kind_of(layers[index]));
        blocks_.emplace_back(builder, config_, layers[index], style, index);
      }
      norm_ = make_norm(builder, "norm", config_.norm, config_.hidden);
      if (!config_.rotary_in_layers) {
        rotary_.emplace(builder, config_.rotary);
        if (config_.two_rotaries) window_rotary_.emplace(builder, config_.rotary);
      }
    }
    make_head(builder, config, embedding_, config_.hidden, config_.vocabulary,
              config_.tied_by_default);
  }

 private:
  bool widened_logits() const override { return true; }
  bool always_masks() const override { return showing_ && images_->is_bidirectional(); }

  void load_extra_inputs(std::int64_t size) override {
    if (images_) images_->load(size);
  }

  Tensor body(const Tensor& ids, KeyValueCache* cache) override {
    Tensor embeddings = embedding(embedding_, ids);
    if (scale_) {
      const Tensor factor = to_dtype(scale_, embeddings.dtype());
      embeddings = mul(embeddings, factor);
    }
    prepare_embeddings(settings(), embeddings);  // what the embedding's module returns
    if (!scale_ && config_.embedding_multiplier)
      embeddings = mul_scalar(embeddings, *config_.embedding_multiplier);
    ImageFeatures shown;  // kept by names of the model around this one
    showing_ = images_ && images_->tokens() > 0 && ids.size(1) > 1;  // not with a next token
    if (showing_) {
      shown = images_->show();
      embeddings = scatter_image_features(embeddings, ids, shown);
    }
    const std::int64_t window = config_.window;
    Pass pass = begin_pass(embeddings, cache, config_.mixes_windows ? 0 : window);
    if (has_windows_) pass.window_mask = mask_for(embeddings, cache, window);
    const bool wide = config_.rotary_style == RotaryStyle::kWideTables ||
                      config_.rotary_style == RotaryStyle::kWidePairs;
    const DType table_type = wide ? DType::kFp32 : embeddings.dtype();
    if (config_.embedding_dropout > 0) embeddings = dropout(embeddings, config_.embedding_dropout);
    if (rotary_) pass.rotary = tables_for(counted_positions(embeddings, pass), table_type);
    if (window_rotary_) pass.window_rotary = window_rotary_->tables(pass.positions, table_type);
    Tensor hidden = scatter_positions(embeddings, config_.shards);
    if (config_.shards > 1) embeddings.reset();
    BlockReplays::Pass replayed(replays_, settings(), cache, nullptr);
    for (std::size_t i = 0; i < blocks_.size(); ++i) {
      hidden = replayed(
          i, hidden, [&](const Tensor& x) { return run_block(settings(), blocks_[i], x, pass); });
      if (i < shown.deeper.size()) hidden = add_deepstack_features(hidden, shown, i);
    }
    hidden = norm_(hidden);
    return gather_positions(hidden, config_.shards);
  }

  // Where images have places in height and width, every sample has tables of its own.
  Tensor counted_positions(const Tensor& embeddings, const Pass& pass) const {
    if (!images_ || !images_->has_3d_positions()) return pass.positions;
    return session().empty({embeddings.size(0), embeddings.size(1)}, DType::kInt64);
  }

  RotaryTables tables_for(const Tensor& positions, DType type) const {
    if (config_.latent.complex) return rotary_->complex_tables(positions);
    if (config_.rotary_style == RotaryStyle::kHalves) return rotary_->half_tables(positions, type);
    return rotary_->tables(positions, type);
  }

  Tensor head(const Tensor& hidden) override {
    Tensor logits = CausalModel::head(hidden);
    if (config_.scaled_logits) logits = mul_scalar(logits, 1);
    if (config_.logits_softcap > 0) {
      logits = div_scalar(logits, config_.logits_softcap);
      logits = activate(Activation::kTanh, logits);
      logits = mul_scalar(logits, config_.logits_softcap);
    }
    return logits;
  }

  LlamaConfig config_;
  bool has_windows_ = false;  // in some layer: only then the library makes their mask
  std::unique_ptr<ImageSource> images_;
  bool showing_ = false;  // images, in this pass
  Tensor embedding_, scale_;
  std::vector<LlamaBlock> blocks_;
  BlockReplays replays_;
  NormLayer norm_;
  std::optional<Rotary> rotary_, window_rotary_;
};

// Quantized experts are linear layers of their own in every version: these know no other.
bool quantizes_each_expert(Quantization kind) {
  switch (kind) {
    case Quantization::kNone:
    case Quantization::kFp8:
    case Quantization::kMxfp4: return false;
    case Quantization::kInt8:
    case Quantization::kNf4:
    case Quantization::kNf4Double:
    case Quantization::kGptq:
    case Quantization::kAwq: break;
  }
  return true;
}

}  // namespace

std::unique_ptr<Network> make_llama(Builder& builder, const Node& config,
                                    const ModelSettings& settings) {
  return make_multimodal_llama(builder, config, settings, nullptr);
}

std::unique_ptr<Network> make_multimodal_llama(Builder& builder, const Node& config,
                                               const ModelSettings& settings,
                                               std::unique_ptr<ImageSource> images) {
  ModelSettings chosen = settings;
  chosen.transformers = settings.transformers.at_least(llama_variant(config).family.since);
  LlamaConfig cfg = read_llama_config(config, chosen);
  const bool apart = !chosen.transformers.groups_experts() ||
                     quantizes_each_expert(builder.options().quantization);
  cfg.grouped_experts = cfg.experts.form == ExpertForm::kClampedWithBias || !apart;
  // No kernel of the framework knows sinks or caps scores; the flash library's does.
  const bool capped = cfg.attention_softcap > 0 && settings.transformers.caps_scores_eagerly() &&
                      settings.attention == AttentionImplementation::kAuto;
  if (capped || (cfg.sinks && settings.attention != AttentionImplementation::kFlash))
    chosen.attention = AttentionImplementation::kEager;
  return std::make_unique<Llama>(builder, config, chosen, cfg, std::move(images));
}

}  // namespace memfathom

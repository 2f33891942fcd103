#include "estimator/models/families/language/bart/bart_stack.h"

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <string>
#include <utility>

#include "estimator/models/blocks/config_reader.h"
#include "estimator/models/blocks/pass.h"
#include "kernels/framework/ops/arithmetic.h"
#include "kernels/framework/ops/loss.h"

namespace memfathom {
namespace {

BartSide read_side(const Node& config, std::string_view side, std::int64_t hidden) {
  const std::string name(side);
  const std::string heads = name + "_attention_heads";
  BartSide read;
  read.layers = count_or(config, {name + "_layers"}, 12, kMaxLayers);
  read.heads = count_or(config, {heads}, 16);
  require_divides(config, {heads}, read.heads, hidden, "d_model");
  read.ffn = count_or(config, {name + "_ffn_dim"}, 4096);
  return read;
}

void read_flavor(const Node& config, std::string_view type, BartConfig& cfg) {
  const auto is_any = [&](std::initializer_list<std::string_view> names) {
    return std::find(names.begin(), names.end(), type) != names.end();
  };
  cfg.norm_first = is_any({"mbart", "whisper", "pegasus", "blenderbot", "m2m_100"});
  cfg.norms_embeddings = is_any({"bart", "mbart", "plbart", "blenderbot-small"});
  cfg.final_bias = !is_any({"whisper", "m2m_100"});
  if (is_any({"blenderbot", "blenderbot-small"})) cfg.positions = BartPositions::kTable;
  if (is_any({"pegasus", "marian"})) cfg.positions = BartPositions::kSinusoids;
  if (type == "m2m_100") cfg.positions = BartPositions::kBuffer;
  if (type != "marian") return;
  cfg.shared = flag_or(config, {"share_encoder_decoder_embeddings"}, true);
  if (!cfg.shared)
    cfg.target_vocabulary = count_or(config, {"decoder_vocab_size"}, cfg.vocabulary, kMaxTokens);
}

}  // namespace

BartConfig read_bart_config(const Node& config, const ModelSettings& settings) {
  const std::string& type = config.at("model_type").as_string();
  BartConfig cfg;
  cfg.hidden = required_count(config, {"d_model"});
  cfg.encoder = read_side(config, "encoder", cfg.hidden);
  cfg.decoder = read_side(config, "decoder", cfg.hidden);
  cfg.vocabulary = required_count(config, {"vocab_size"}, kMaxTokens);
  cfg.target_vocabulary = cfg.vocabulary;
  cfg.tied = flag_or(config, {"tie_word_embeddings"}, true);
  read_flavor(config, type, cfg);
  if (type == "whisper") {
    cfg.mel_bins = count_or(config, {"num_mel_bins"}, 80);
    cfg.source_positions = count_or(config, {"max_source_positions"}, 1500, kMaxTokens);
    cfg.target_positions = count_or(config, {"max_target_positions"}, 448, kMaxTokens);
  } else {
    cfg.source_positions = count_or(config, {"max_position_embeddings"}, 1024, kMaxTokens);
    cfg.target_positions = cfg.source_positions;
  }
  const auto dropout = [&](std::string_view name, double own) {
    return settings.dropout.value_or(probability_or(config, {name}, own));
  };
  cfg.dropout = dropout("dropout", cfg.is_speech_model() ? 0 : 0.1);
  const bool drops_weights = type == "m2m_100" || type == "plbart";
  cfg.attention_dropout = dropout("attention_dropout", drops_weights ? 0.1 : 0);
  cfg.activation_dropout = dropout("activation_dropout", 0);
  cfg.activation =
      activation_or(config, {"activation_function"}, type == "m2m_100" ? "relu" : "gelu");
  return cfg;
}

BartAttention::BartAttention(Builder& builder, const char* name, const BartConfig& cfg,
                             std::int64_t heads, const ModelSettings& settings, bool causal)
    : is_speech_model_(cfg.is_speech_model()),
      head_size_(cfg.hidden / heads),
      scale_(1 / std::sqrt(static_cast<double>(head_size_))) {
  style_.implementation = settings.attention;
  style_.causal = causal;
  style_.dropout = cfg.attention_dropout;
  style_.scale = is_speech_model_ ? 1 : scale_;
  style_.softmax_in_fp32 = false;
  const PathScope scope(builder, name);
  k_ = make_linear(builder, "k_proj", cfg.hidden, cfg.hidden, {.bias = !is_speech_model_});
  v_ = make_linear(builder, "v_proj", cfg.hidden, cfg.hidden);
  q_ = make_linear(builder, "q_proj", cfg.hidden, cfg.hidden);
  output_ = make_linear(builder, "out_proj", cfg.hidden, cfg.hidden);
}

// Whisper copies its heads together.
Tensor BartAttention::in_heads(const Tensor& projected) const {
  const Tensor heads = split_heads(projected, head_size_);
  return is_speech_model_ ? contiguous(heads) : heads;
}

Attended BartAttention::operator()(const Tensor& x, const Tensor& source, const Tensor& mask,
                                   KeyValueCache* cache, std::size_t layer) const {
  const Tensor q = in_heads(is_speech_model_ ? mul_scalar(q_(x), scale_) : q_(x));
  Tensor k = in_heads(k_(source));
  Tensor v = in_heads(v_(source));
  if (cache != nullptr) cache->update(layer, k, v);
  Attended attended = attend(style_, q, k, v, mask);
  attended.output = merge_heads(attended.output);
  attended.output = output_(attended.output);
  return attended;
}

BartBlock::BartBlock(Builder& builder, const BartConfig& cfg, const ModelSettings& settings,
                     bool decoder, std::size_t index)
    : config_(cfg),
      index_(index),
      self_(builder, "self_attn", cfg, decoder ? cfg.decoder.heads : cfg.encoder.heads, settings,
            decoder) {
  self_norm_ = make_layer_norm(builder, "self_attn_layer_norm", cfg.hidden);
  if (decoder) {
    cross_.emplace(builder, "encoder_attn", cfg, cfg.decoder.heads, settings, false);
    cross_norm_ = make_layer_norm(builder, "encoder_attn_layer_norm", cfg.hidden);
  }
  const std::int64_t ffn = decoder ? cfg.decoder.ffn : cfg.encoder.ffn;
  first_ = make_linear(builder, "fc1", cfg.hidden, ffn);
  second_ = make_linear(builder, "fc2", ffn, cfg.hidden);
  mlp_norm_ = make_layer_norm(builder, "final_layer_norm", cfg.hidden);
}

Tensor BartBlock::operator()(const Tensor& x, const BartPass& pass) const {
  Tensor weights;  // Python's `_` keeps eager's weights until the next attention's
  // One part of the block with its norm, dropout and the sum with what went in.
  const auto with_residual = [&](const Tensor& residual, const LayerNorm& norm, auto part) {
    Tensor hidden = config_.norm_first ? norm(residual) : residual;
    hidden = part(hidden);
    hidden = dropout(hidden, config_.dropout);
    hidden = add(residual, hidden);
    return config_.norm_first ? hidden : norm(hidden);
  };
  Tensor hidden = with_residual(x, self_norm_, [&](const Tensor& in) {
    Attended attended = self_(in, in, pass.mask, pass.cache, index_);
    weights = std::move(attended.weights);
    return attended.output;
  });
  if (cross_) {
    hidden = with_residual(hidden, cross_norm_, [&](const Tensor& in) {
      Attended attended = (*cross_)(in, pass.encoded, pass.cross_mask, pass.cross_cache, index_);
      weights = std::move(attended.weights);
      return attended.output;
    });
  }
  return with_residual(hidden, mlp_norm_, [&](const Tensor& in) { return feed_forward(in); });
}

Tensor BartBlock::feed_forward(const Tensor& x) const {
  Tensor hidden = activate(config_.activation, first_(x));
  hidden = dropout(hidden, config_.activation_dropout);
  return second_(hidden);
}

BartStack::BartStack(Builder& builder, const char* name, const BartConfig& cfg,
                     const ModelSettings& settings, bool decoder)
    : settings_(settings) {
  const PathScope scope(builder, name);
  const std::int64_t layers = decoder ? cfg.decoder.layers : cfg.encoder.layers;
  blocks_.reserve(static_cast<std::size_t>(layers));
  for (std::int64_t i = 0; i < layers; ++i) {
    const PathScope block(builder, "layers", i);
    // The last blocks of the whole model are the decoder's.
    const BlockScope counted(builder, i, decoder ? layers : layers + cfg.decoder.layers);
    blocks_.emplace_back(builder, cfg, settings, decoder, static_cast<std::size_t>(i));
  }
  if (cfg.norm_first) last_norm_ = make_layer_norm(builder, "layer_norm", cfg.hidden);
}

Tensor BartStack::run(const BartBlock& block, const Tensor& x, const BartPass& pass) const {
  if (!checkpoints(settings_, x.session())) return block(x, pass);
  BartPass kept = pass;
  kept.cache = kept.cross_cache = nullptr;  // it would be written twice
  const Tensor inputs[] = {x, kept.mask, kept.encoded};
  kept.mask = kept.encoded = Tensor();
  const CheckpointedMultiFunction segment = [&block, kept](std::span<const Tensor> given) {
    BartPass own = kept;
    own.mask = given[1];
    own.encoded = given[2];
    return std::vector<Tensor>{block(given[0], own)};
  };
  return run_checkpointed(settings_, segment, inputs).front();
}

Tensor BartStack::operator()(const Tensor& embedded, const BartPass& pass) const {
  Tensor hidden = embedded;
  for (const BartBlock& block : blocks_) hidden = run(block, hidden, pass);
  return last_norm_ ? (*last_norm_)(hidden) : hidden;
}

}  // namespace memfathom

#include "estimator/models/blocks/encoder_layer.h"

#include <cmath>
#include <utility>

#include "estimator/models/blocks/config_reader.h"
#include "kernels/framework/ops/arithmetic.h"
#include "kernels/framework/ops/attention.h"
#include "kernels/framework/ops/loss.h"
#include "kernels/framework/ops/views.h"

namespace memfathom {

EncoderConfig read_encoder_config(const Node& config, const EncoderConfig& defaults) {
  EncoderConfig cfg = defaults;
  cfg.hidden = count_or(config, {"hidden_size"}, defaults.hidden);
  cfg.layers = count_or(config, {"num_hidden_layers"}, defaults.layers, kMaxLayers);
  cfg.heads = count_or(config, {"num_attention_heads"}, defaults.heads);
  require_divides(config, {"num_attention_heads"}, cfg.heads, cfg.hidden, "hidden_size");
  cfg.ffn = count_or(config, {"intermediate_size"}, defaults.ffn);
  return cfg;
}

namespace {

// DINOv3: tokens before the patches, which the tables have no rows for, pass through.
Tensor rotate_patches(const Tensor& x, const RotaryTables& tables) {
  const std::int64_t before = x.size(2) - tables.cos.size(2);
  const Tensor patches = slice(x, 2, before, x.size(2));
  const Tensor parts[] = {slice(x, 2, 0, before), apply_rotary(patches, tables.cos, tables.sin)};
  return cat(parts, 2);
}

}  // namespace

EncoderLayer::EncoderLayer(Builder& builder, const EncoderConfig& cfg,
                           const ModelSettings& settings)
    : config_(cfg) {
  config_.dropout = settings.dropout.value_or(cfg.dropout);
  style_.implementation = settings.attention;
  style_.causal = cfg.causal;
  style_.softmax_in_fp32 = cfg.softmax_in_fp32;
  style_.dropout = settings.dropout.value_or(cfg.attention_dropout);
  style_.scale = 1 / std::sqrt(static_cast<double>(cfg.head_size()));
  const std::int64_t width = cfg.hidden;
  {
    const PathScope scope(builder, cfg.names.attention);
    const LinearOptions options{.bias = cfg.qkv_bias};
    q_ = make_linear(builder, "q_proj", width, width, options);
    k_ = make_linear(builder, "k_proj", width, width, {.bias = cfg.qkv_bias && cfg.key_bias});
    v_ = make_linear(builder, "v_proj", width, width, options);
    output_ = make_linear(builder, cfg.names.output, width, width, {.bias = cfg.output_bias});
  }
  first_norm_ = make_layer_norm(builder, cfg.names.first_norm, width);
  {
    const PathScope scope(builder, "mlp");
    const LinearOptions options{.bias = cfg.mlp_bias};
    first_ = make_linear(builder, cfg.gated ? "gate_proj" : "fc1", width, cfg.ffn, options);
    if (cfg.gated) up_ = make_linear(builder, "up_proj", width, cfg.ffn, options);
    second_ = make_linear(builder, cfg.gated ? "down_proj" : "fc2", cfg.ffn, width, options);
  }
  if (cfg.layer_scale) {
    first_scale_ = builder.parameter(cfg.names.first_scale, {width});
    second_scale_ = builder.parameter(cfg.names.second_scale, {width});
  }
  second_norm_ = make_layer_norm(builder, cfg.names.second_norm, width);
}

Attended EncoderLayer::attention(const Tensor& x, const Pass& pass) const {
  Tensor q = split_heads(q_(x), config_.head_size());
  Tensor k = split_heads(k_(x), config_.head_size());
  const Tensor v = split_heads(v_(x), config_.head_size());
  if (pass.rotary.cos) {
    Tensor rotated = rotate_patches(q, pass.rotary);
    k = rotate_patches(k, pass.rotary);
    q = std::move(rotated);
  }
  Attended attended = attend(style_, q, k, v, pass.mask);
  attended.output = merge_heads(attended.output);
  attended.output = output_(attended.output);
  return attended;
}

Tensor EncoderLayer::feed_forward(const Tensor& x) const {
  if (config_.gated) {
    Tensor both;
    {
      const Tensor gate = activate(Activation::kSilu, first_(x));
      both = mul(gate, up_(x));
    }
    return second_(both);
  }
  Tensor hidden = first_(x);
  hidden = activate(config_.activation, hidden);
  return second_(hidden);
}

Tensor EncoderLayer::closed(Tensor x, const Tensor& scale) const {
  x = dropout(x, config_.dropout);
  if (scale) x = mul(x, scale);
  if (config_.drop_path == 0 || !x.session().training) return x;
  const Tensor kept = x.session().empty({x.size(0), 1, 1}, x.dtype());
  return mul(div_scalar(x, 1 - config_.drop_path), kept);
}

Tensor EncoderLayer::operator()(const Tensor& x, const Pass& pass) const {
  Tensor weights;  // Python's `_` keeps eager's weights to the end
  Tensor hidden = first_norm_(x);
  {
    Attended attended = attention(hidden, pass);
    hidden = std::move(attended.output);
    weights = std::move(attended.weights);
  }
  hidden = closed(std::move(hidden), first_scale_);
  hidden = add(hidden, x);
  const Tensor residual = hidden;
  {
    const Tensor normed = second_norm_(hidden);  // the layer's name for it while the MLP runs
    hidden = feed_forward(normed);
  }
  hidden = closed(std::move(hidden), second_scale_);
  return add(hidden, residual);
}

std::vector<EncoderLayer> make_encoder_layers(Builder& builder, std::string_view name,
                                              const EncoderConfig& cfg,
                                              const ModelSettings& settings) {
  std::vector<EncoderLayer> layers;
  layers.reserve(static_cast<std::size_t>(cfg.layers));
  for (std::int64_t i = 0; i < cfg.layers; ++i) {
    const PathScope scope(builder, name, i);
    const BlockScope block(builder, i, cfg.layers, cfg.hidden);
    EncoderConfig own = cfg;
    if (cfg.drop_path_grows)
      own.drop_path *=
          cfg.layers > 1 ? static_cast<double>(i) / static_cast<double>(cfg.layers - 1) : 0;
    layers.emplace_back(builder, own, settings);
  }
  return layers;
}

}  // namespace memfathom

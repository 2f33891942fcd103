#include "estimator/models/vision/encoder_layer.h"

#include <cmath>
#include <utility>

#include "estimator/models/language/config_reader.h"
#include "kernels/ops/arithmetic.h"
#include "kernels/ops/loss.h"

namespace memfathom {

EncoderPlan read_encoder_plan(const Node& config, const EncoderPlan& defaults) {
  EncoderPlan plan = defaults;
  plan.hidden = count_or(config, {"hidden_size"}, defaults.hidden);
  plan.layers = count_or(config, {"num_hidden_layers"}, defaults.layers, kMostLayers);
  plan.heads = count_or(config, {"num_attention_heads"}, defaults.heads);
  require_divides(config, {"num_attention_heads"}, plan.heads, plan.hidden, "hidden_size");
  plan.ffn = count_or(config, {"intermediate_size"}, defaults.ffn);
  return plan;
}

EncoderLayer::EncoderLayer(Builder& builder, const EncoderPlan& plan, const ModelSettings& settings)
    : plan_(plan) {
  plan_.dropout = settings.dropout.value_or(plan.dropout);
  style_.implementation = settings.attention;
  style_.causal = plan.causal;
  style_.dropout = settings.dropout.value_or(plan.attention_dropout);
  style_.scale = 1 / std::sqrt(static_cast<double>(plan.head_size()));
  const std::int64_t width = plan.hidden;
  {
    const PathScope scope(builder, plan.names.attention);
    const LinearOptions options{.bias = plan.qkv_bias};
    q_ = make_linear(builder, "q_proj", width, width, options);
    k_ = make_linear(builder, "k_proj", width, width, options);
    v_ = make_linear(builder, "v_proj", width, width, options);
    output_ = make_linear(builder, plan.names.output, width, width);
  }
  first_norm_ = make_layer_norm(builder, plan.names.first_norm, width);
  {
    const PathScope scope(builder, "mlp");
    first_ = make_linear(builder, "fc1", width, plan.ffn);
    second_ = make_linear(builder, "fc2", plan.ffn, width);
  }
  second_norm_ = make_layer_norm(builder, plan.names.second_norm, width);
}

Attended EncoderLayer::attention(const Tensor& x, const Tensor& mask) const {
  const Tensor q = split_heads(q_(x), plan_.head_size());
  const Tensor k = split_heads(k_(x), plan_.head_size());
  const Tensor v = split_heads(v_(x), plan_.head_size());
  Attended attended = attend(style_, q, k, v, mask);
  attended.output = merge_heads(attended.output);
  attended.output = output_(attended.output);
  return attended;
}

Tensor EncoderLayer::operator()(const Tensor& x, const Pass& pass) const {
  Tensor weights;  // Python's `_` keeps eager's weights to the end
  Tensor hidden = first_norm_(x);
  {
    Attended attended = attention(hidden, pass.mask);
    hidden = std::move(attended.output);
    weights = std::move(attended.weights);
  }
  hidden = dropout(hidden, plan_.dropout);
  hidden = add(hidden, x);
  const Tensor residual = hidden;
  {
    const Tensor normed = second_norm_(hidden);  // the layer's name for it while the MLP runs
    hidden = first_(normed);
    hidden = activate(plan_.activation, hidden);
    hidden = second_(hidden);
  }
  hidden = dropout(hidden, plan_.dropout);
  return add(hidden, residual);
}

std::vector<EncoderLayer> make_encoder_layers(Builder& builder, std::string_view name,
                                              const EncoderPlan& plan,
                                              const ModelSettings& settings) {
  std::vector<EncoderLayer> layers;
  layers.reserve(static_cast<std::size_t>(plan.layers));
  for (std::int64_t i = 0; i < plan.layers; ++i) {
    const PathScope scope(builder, name, i);
    const BlockScope block(builder, i, plan.layers, plan.hidden);
    layers.emplace_back(builder, plan, settings);
  }
  return layers;
}

}  // namespace memfathom

#include "estimator/models/blocks/image_tower.h"

#include <cmath>
#include <utility>

#include "estimator/models/blocks/config_reader.h"
#include "kernels/framework/layers/batch_scope.h"
#include "kernels/framework/ops/arithmetic.h"
#include "kernels/framework/ops/embedding.h"
#include "kernels/framework/ops/loss.h"
#include "kernels/framework/ops/matmul.h"
#include "kernels/framework/ops/views.h"

namespace memfathom {

EncoderConfig read_tower(const Node& config, EncoderConfig defaults, std::string_view activation) {
  defaults.names = {"self_attn", "out_proj", "layer_norm1", "layer_norm2"};
  EncoderConfig cfg = read_encoder_config(config, defaults);
  cfg.attention_dropout = probability_or(config, {"attention_dropout"}, 0);
  cfg.activation = activation_or(config, {"hidden_act"}, activation);
  return cfg;
}

ImageTower::ImageTower(Builder& builder, const Node& config, const ModelSettings& settings)
    : session_(builder.session()), settings_(settings) {
  const Node* type = find_any(config, {"model_type"});
  siglip_ = type != nullptr && type->as_string() == "siglip_vision_model";
  config_ = read_tower(config, {.hidden = 768, .layers = 12, .heads = 12, .ffn = 3072},
                       siglip_ ? "gelu_pytorch_tanh" : "quick_gelu");
  image_ = extent_or(config, "image_size", 224);
  patch_ = extent_or(config, "patch_size", siglip_ ? 16 : 32).height;
  require_config_size(config, settings, image_);
  channels_ = count_or(config, {"num_channels"}, 3);
  const std::int64_t places =
      (image_.height / patch_) * (image_.width / patch_) + (siglip_ ? 0 : 1);
  const PathScope scope(builder, "vision_model");
  if (!siglip_) class_ = builder.parameter("embeddings.class_embedding", {config_.hidden});
  patches_ = conv_layer({builder, settings}, "embeddings.patch_embedding",
                        {.in = channels_,
                         .out = config_.hidden,
                         .kernel = patch_,
                         .stride = patch_,
                         .bias = siglip_});
  position_table_ =
      builder.parameter("embeddings.position_embedding.weight", {places, config_.hidden});
  position_ids_ = builder.buffer("embeddings.position_ids", {1, places}, DType::kInt64, false);
  if (!siglip_) first_norm_ = make_layer_norm(builder, "pre_layrnorm", config_.hidden);
  layers_ = make_encoder_layers(builder, "encoder.layers", config_, settings);
  last_norm_ = make_layer_norm(builder, "post_layernorm", config_.hidden);
  if (siglip_ && flag_or(config, {"vision_use_head"}, true)) make_pooling_head(builder);
}

void ImageTower::make_pooling_head(Builder& builder) {
  const PathScope scope(builder, "head");
  const std::int64_t width = config_.hidden;
  PoolingHead head;
  head.probe = builder.parameter("probe", {1, 1, width});
  head.in_weight = builder.parameter("attention.in_proj_weight", {3 * width, width});
  head.in_bias = builder.parameter("attention.in_proj_bias", {3 * width});
  head.output = make_linear(builder, "attention.out_proj", width, width);
  head.norm = make_layer_norm(builder, "layernorm", width);
  head.first = make_linear(builder, "mlp.fc1", width, config_.ffn);
  head.second = make_linear(builder, "mlp.fc2", config_.ffn, width);
  head_ = std::move(head);
}

void ImageTower::load(std::int64_t size) {
  const BatchScope scope(session_, {&image_tensor_});
  image_tensor_ =
      session_.zeros({size, channels_, image_.height, image_.width}, settings_.precision);
}

TowerOutput ImageTower::operator()(std::optional<std::int64_t> layer) const {
  Tensor hidden = embedded();
  if (!siglip_) hidden = first_norm_(hidden);
  prepare_image_embeddings(settings_, hidden);
  const Tensor embedding = hidden;  // named until the tower returns
  const Pass pass;
  const std::int64_t wanted =
      !layer ? -1 : (*layer < 0 ? config_.layers + 1 + *layer : *layer);  // 0: the embeddings
  TowerOutput seen;
  if (wanted == 0) seen.chosen = hidden;
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    hidden = run_block(settings_, layers_[i], hidden, pass);
    if (wanted == static_cast<std::int64_t>(i) + 1) seen.chosen = hidden;
  }
  if (siglip_) {
    seen.tokens = last_norm_(hidden);
    if (head_) seen.pooled = pooled(seen.tokens);
  } else {
    seen.pooled = last_norm_(select(hidden, 1, 0));
    seen.tokens = std::move(hidden);
  }
  return seen;
}

Tensor ImageTower::embedded() const {
  Tensor x = patches_(image_tensor_);
  x = transpose(flatten(x, 2), 1, 2);
  if (class_) {
    const Tensor parts[] = {expand(view(class_, {1, 1, -1}), {x.size(0), 1, x.size(2)}), x};
    x = cat(parts, 1);
  }
  const Tensor positions = embedding(position_table_, position_ids_);
  return add(x, positions);
}

// nn.MultiheadAttention of a question with its weights wanted: no kernel, and inside it the
// sequence comes first.
Tensor ImageTower::asked(const Tensor& probe, const Tensor& tokens) const {
  const std::int64_t width = config_.hidden;
  const std::int64_t batch = tokens.size(0);
  const std::int64_t sizes[] = {width, 2 * width};
  const std::vector<Tensor> matrices = split(head_->in_weight, sizes, 0);
  const std::vector<Tensor> biases = split(head_->in_bias, sizes, 0);
  const Tensor q = linear(transpose(probe, 0, 1), matrices[0], biases[0]);
  Tensor packed = linear(transpose(tokens, 0, 1), matrices[1], biases[1]);
  packed = view(packed, {tokens.size(1), batch, 2, width});
  packed = contiguous(permute(packed, {2, 0, 1, 3}));
  const auto heads = [&](const Tensor& t) {
    return transpose(view(t, {t.size(0), batch * config_.heads, config_.head_size()}), 0, 1);
  };
  const Tensor scaled =
      mul_scalar(heads(q), 1 / std::sqrt(static_cast<double>(config_.head_size())));
  Tensor weights = bmm(scaled, transpose(heads(select(packed, 0, 0)), 1, 2));
  weights = softmax(weights);
  Tensor answer = bmm(weights, heads(select(packed, 0, 1)));
  answer = reshape(transpose(answer, 0, 1), {batch, width});
  answer = head_->output(answer);
  const Tensor average = mean(view(weights, {batch, config_.heads, 1, -1}), {1}, false);
  return view(answer, {batch, 1, width});
}

Tensor ImageTower::pooled(const Tensor& tokens) const {
  Tensor x;
  {
    const Tensor probe = clone(expand(head_->probe, {tokens.size(0), 1, config_.hidden}));
    x = asked(probe, tokens);
  }
  const Tensor residual = x;
  x = head_->norm(x);
  x = head_->second(activate(config_.activation, head_->first(x)));
  return select(add(residual, x), 1, 0);
}

}  // namespace memfathom

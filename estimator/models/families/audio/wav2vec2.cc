// wav2vec 2.0 and HuBERT: convolutions over the samples of a recording, and a transformer that
// knows positions by one more convolution. The classifier of whole recordings.
#include <cmath>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "estimator/models/blocks/attention.h"
#include "estimator/models/blocks/config_reader.h"
#include "estimator/models/blocks/image_config.h"
#include "estimator/models/blocks/image_network.h"
#include "estimator/models/blocks/pass.h"
#include "estimator/models/families/families.h"
#include "kernels/framework/layers/linear.h"
#include "kernels/framework/layers/normalization.h"
#include "kernels/framework/ops/arithmetic.h"
#include "kernels/framework/ops/convolution.h"
#include "kernels/framework/ops/loss.h"
#include "kernels/framework/ops/views.h"
#include "kernels/framework/tensor/recording.h"

namespace memfathom {
namespace {

struct AudioConfig {
  std::vector<std::int64_t> channels, strides, kernels;
  bool conv_bias = false, layer_norms = false;  // else one group norm, after the first convolution
  std::int64_t hidden = 0, layers = 0, heads = 0, ffn = 0;
  std::int64_t position_kernel = 128, position_groups = 16;
  std::int64_t projection = 256;
  bool norm_first = false, projection_norm = true, masks = true;
  double dropout = 0.1, activation_dropout = 0.1, attention_dropout = 0.1, feature_dropout = 0;
  Activation activation = Activation::kGelu, feature_activation = Activation::kGelu;
};

std::vector<std::int64_t> counts_or(const Node& config, std::string_view name,
                                    std::vector<std::int64_t> fallback) {
  const Node* given = find_any(config, {name});
  return given == nullptr ? std::move(fallback) : given->as_ints(1, kMaxWidth);
}

AudioConfig read_plan(const Node& config, const ModelSettings& settings) {
  AudioConfig cfg;
  cfg.channels = counts_or(config, "conv_dim", {512, 512, 512, 512, 512, 512, 512});
  cfg.strides = counts_or(config, "conv_stride", {5, 2, 2, 2, 2, 2, 2});
  cfg.kernels = counts_or(config, "conv_kernel", {10, 3, 3, 3, 3, 2, 2});
  if (cfg.channels.empty() || cfg.channels.size() != cfg.strides.size() ||
      cfg.channels.size() != cfg.kernels.size() || cfg.channels.size() > 100)
    config.refuse("conv_dim, conv_stride and conv_kernel must have a number for each convolution");
  cfg.conv_bias = flag_or(config, {"conv_bias"}, false);
  if (const Node* norm = find_any(config, {"feat_extract_norm"})) {
    cfg.layer_norms = norm->as_string() == "layer";
    if (!cfg.layer_norms && norm->as_string() != "group") norm->refuse("it must be group or layer");
  }
  cfg.hidden = count_or(config, {"hidden_size"}, 768);
  cfg.layers = count_or(config, {"num_hidden_layers"}, 12, kMaxLayers);
  cfg.heads = count_or(config, {"num_attention_heads"}, 12);
  require_divides(config, {"num_attention_heads"}, cfg.heads, cfg.hidden, "hidden_size");
  cfg.ffn = count_or(config, {"intermediate_size"}, 3072);
  cfg.position_kernel = count_or(config, {"num_conv_pos_embeddings"}, 128);
  cfg.position_groups = count_or(config, {"num_conv_pos_embedding_groups"}, 16);
  require_divides(config, {"num_conv_pos_embedding_groups"}, cfg.position_groups, cfg.hidden,
                  "hidden_size");
  cfg.projection = count_or(config, {"classifier_proj_size"}, 256);
  cfg.norm_first = flag_or(config, {"do_stable_layer_norm"}, false);
  cfg.projection_norm = flag_or(config, {"feat_proj_layer_norm"}, true);
  cfg.masks = number_or(config, {"mask_time_prob"}, 0.05) > 0 ||
              number_or(config, {"mask_feature_prob"}, 0) > 0;
  const auto dropout = [&](std::string_view name, double own) {
    return settings.dropout.value_or(probability_or(config, {name}, own));
  };
  cfg.dropout = dropout("hidden_dropout", 0.1);
  cfg.activation_dropout = dropout("activation_dropout", 0.1);
  cfg.attention_dropout = dropout("attention_dropout", 0.1);
  cfg.feature_dropout = dropout("feat_proj_dropout", 0);
  cfg.activation = activation_or(config, {"hidden_act"}, "gelu");
  cfg.feature_activation = activation_or(config, {"feat_extract_activation"}, "gelu");
  const auto refuse = [&](const char* key) {
    if (flag_or(config, {key}, false))
      config.at(key).refuse("it is not modelled; record the step with memfathom capture");
  };
  refuse("add_adapter");
  refuse("use_weighted_layer_sum");
  refuse("conv_pos_batch_norm");
  if (find_any(config, {"adapter_attn_dim"}) != nullptr)
    config.at("adapter_attn_dim")
        .refuse("adapters are not modelled; record the step with memfathom capture");
  return cfg;
}

ConvolutionOptions options_of(std::int64_t stride, std::int64_t padding, std::int64_t groups) {
  ConvolutionOptions options;
  options.stride = {stride};
  options.padding = {padding};
  options.dilation = {1};
  options.groups = groups;
  return options;
}

class FeatureConvolution {
 public:
  FeatureConvolution(Builder& builder, const AudioConfig& cfg, std::size_t index)
      : stride_(cfg.strides[index]), activation_(cfg.feature_activation) {
    const std::int64_t in = index > 0 ? cfg.channels[index - 1] : 1;
    const std::int64_t out = cfg.channels[index];
    weight_ = builder.parameter("conv.weight", {out, in, cfg.kernels[index]});
    if (cfg.conv_bias) bias_ = builder.parameter("conv.bias", {out});
    if (cfg.layer_norms) {
      layer_norm_ = make_layer_norm(builder, "layer_norm", out);
    } else if (index == 0) {
      group_norm_.emplace();
      group_norm_->groups = out;
      group_norm_->weight = builder.parameter("layer_norm.weight", {out});
      group_norm_->bias = builder.parameter("layer_norm.bias", {out});
    }
  }

  Tensor operator()(const Tensor& x, const Pass& /*pass*/) const {
    Tensor hidden = convolution(x, weight_, bias_, options_of(stride_, 0, 1));
    if (layer_norm_) hidden = transpose((*layer_norm_)(transpose(hidden, 1, 2)), 1, 2);
    if (group_norm_) hidden = (*group_norm_)(hidden);
    return activate(activation_, hidden);
  }

 private:
  std::int64_t stride_;
  Activation activation_;
  Tensor weight_, bias_;
  std::optional<LayerNorm> layer_norm_;
  std::optional<GroupNorm> group_norm_;
};

// torch._weight_norm over the last dimension: v * (g / |v|), made in every pass.
Tensor normed_weight(const Tensor& g, const Tensor& v) {
  Session& session = v.session();
  Recording tape(session, "_weight_norm", {&v, &g});
  tape.save(v);
  tape.save(g);
  Tensor out = session.empty(v.shape(), v.dtype());
  const Tensor norms = session.empty({1, 1, v.size(2)}, DType::kFp32);
  tape.save(norms);
  tape.finish(out, [](Backward& b) {
    const Tensor kept = b.saved(0);
    const Tensor factors = b.saved(1);
    if (b.needs(0)) b.give(0, b.session().empty(kept.shape(), kept.dtype()));
    if (b.needs(1)) b.give(1, b.session().empty(factors.shape(), factors.dtype()));
  });
  return out;
}

class AudioBlock {
 public:
  AudioBlock(Builder& builder, const AudioConfig& cfg, const ModelSettings& settings)
      : config_(cfg), head_size_(cfg.hidden / cfg.heads) {
    style_.implementation = settings.attention;
    style_.causal = false;
    style_.dropout = cfg.attention_dropout;
    style_.scale = 1 / std::sqrt(static_cast<double>(head_size_));
    style_.softmax_in_fp32 = false;
    {
      const PathScope scope(builder, "attention");
      k_ = make_linear(builder, "k_proj", cfg.hidden, cfg.hidden);
      v_ = make_linear(builder, "v_proj", cfg.hidden, cfg.hidden);
      q_ = make_linear(builder, "q_proj", cfg.hidden, cfg.hidden);
      output_ = make_linear(builder, "out_proj", cfg.hidden, cfg.hidden);
    }
    norm_ = make_layer_norm(builder, "layer_norm", cfg.hidden);
    first_ = make_linear(builder, "feed_forward.intermediate_dense", cfg.hidden, cfg.ffn);
    second_ = make_linear(builder, "feed_forward.output_dense", cfg.ffn, cfg.hidden);
    last_norm_ = make_layer_norm(builder, "final_layer_norm", cfg.hidden);
  }

  Tensor operator()(const Tensor& x, const Pass& /*pass*/) const {
    Tensor weights;  // Python's `_` keeps eager's weights to the end
    Tensor hidden = config_.norm_first ? norm_(x) : x;
    {
      Attended attended = attention(hidden);
      hidden = std::move(attended.output);
      weights = std::move(attended.weights);
    }
    hidden = dropout(hidden, config_.dropout);
    hidden = add(x, hidden);
    if (config_.norm_first) {
      const Tensor fed = feed_forward(last_norm_(hidden));
      return add(hidden, fed);
    }
    hidden = norm_(hidden);
    {
      const Tensor fed = feed_forward(hidden);
      hidden = add(hidden, fed);
    }
    return last_norm_(hidden);
  }

 private:
  Attended attention(const Tensor& x) const {
    const Tensor q = split_heads(q_(x), head_size_);
    const Tensor k = split_heads(k_(x), head_size_);
    const Tensor v = split_heads(v_(x), head_size_);
    Attended attended = attend(style_, q, k, v, {});
    attended.output = merge_heads(attended.output);
    attended.output = output_(attended.output);
    return attended;
  }

  Tensor feed_forward(const Tensor& x) const {
    Tensor hidden = first_(x);
    hidden = activate(config_.activation, hidden);
    hidden = dropout(hidden, config_.activation_dropout);
    hidden = second_(hidden);
    return dropout(hidden, config_.dropout);
  }

  AudioConfig config_;
  std::int64_t head_size_;
  AttentionStyle style_;
  Linear q_, k_, v_, output_, first_, second_;
  LayerNorm norm_, last_norm_;
};

struct AudioModel {
  ModelSettings settings;
  AudioConfig config;
  std::vector<FeatureConvolution> convolutions;
  std::optional<LayerNorm> projection_norm;
  Linear projection, projector, classifier;
  Tensor position_factors, position_weight, position_bias;
  LayerNorm norm;
  std::vector<AudioBlock> blocks;

  Tensor operator()(const Tensor& samples) const {
    Tensor sequence;
    {
      Tensor features = transpose(heard(samples), 1, 2);  // held by the output's extract_features
      if (projection_norm) features = (*projection_norm)(features);
      sequence = encoded(dropout(projection(features), config.feature_dropout));
    }
    const Tensor projected = projector(sequence);
    return classifier(mean(projected, {1}, false));
  }

 private:
  Tensor heard(const Tensor& samples) const {
    Tensor hidden = unsqueeze(samples, 1);
    if (hidden.session().training && hidden.session().grad_enabled)
      hidden.set_requires_grad(true);  // as the library does, for reentrant checkpoints
    const Pass pass;
    for (const FeatureConvolution& layer : convolutions)
      hidden = run_block(settings, layer, hidden, pass);
    return hidden;
  }

  Tensor positions_of(const Tensor& x) const {
    const Tensor weight = normed_weight(position_factors, position_weight);
    Tensor hidden = convolution(transpose(x, 1, 2), weight, position_bias,
                                options_of(1, config.position_kernel / 2, config.position_groups));
    if (config.position_kernel % 2 == 0) hidden = slice(hidden, 2, 0, hidden.size(2) - 1);
    hidden = activate(config.feature_activation, hidden);
    return transpose(hidden, 1, 2);
  }

  Tensor encoded(Tensor hidden) const {
    {
      const Tensor positions = positions_of(hidden);
      hidden = add(hidden, positions);
    }
    if (!config.norm_first) hidden = norm(hidden);
    hidden = dropout(hidden, config.dropout);
    const Pass pass;
    for (const AudioBlock& block : blocks) hidden = run_block(settings, block, hidden, pass);
    return config.norm_first ? norm(hidden) : hidden;
  }
};

void make_parts(Builder& builder, const AudioConfig& cfg, AudioModel& model) {
  if (cfg.masks) builder.parameter("masked_spec_embed", {cfg.hidden});
  for (std::size_t i = 0; i < cfg.channels.size(); ++i) {
    const PathScope scope(builder, "feature_extractor.conv_layers", static_cast<std::int64_t>(i));
    model.convolutions.emplace_back(builder, cfg, i);
  }
  const std::int64_t heard = cfg.channels.back();
  if (cfg.projection_norm)
    model.projection_norm = make_layer_norm(builder, "feature_projection.layer_norm", heard);
  model.projection = make_linear(builder, "feature_projection.projection", heard, cfg.hidden);
  const PathScope scope(builder, "encoder");
  {
    const PathScope positions(builder, "pos_conv_embed.conv");
    model.position_bias = builder.parameter("bias", {cfg.hidden});
    const PathScope weight(builder, "parametrizations.weight");
    model.position_factors = builder.parameter("original0", {1, 1, cfg.position_kernel});
    model.position_weight = builder.parameter(
        "original1", {cfg.hidden, cfg.hidden / cfg.position_groups, cfg.position_kernel});
  }
  model.norm = make_layer_norm(builder, "layer_norm", cfg.hidden);
  model.blocks.reserve(static_cast<std::size_t>(cfg.layers));
  for (std::int64_t i = 0; i < cfg.layers; ++i) {
    const PathScope block(builder, "layers", i);
    const BlockScope counted(builder, i, cfg.layers, cfg.hidden);
    model.blocks.emplace_back(builder, cfg, model.settings);
  }
}

}  // namespace

// training.sequence_length counts the samples of a recording: 16000 are a second. Layers that
// LayerDrop would skip are counted.
std::unique_ptr<Network> make_wav2vec2(Builder& builder, const Node& config,
                                       const ModelSettings& settings) {
  if (!is_architecture(config, "ForSequenceClassification"))
    config.refuse(
        "of wav2vec 2.0 and HuBERT only the classifier of recordings is modelled "
        "(architectures: [Wav2Vec2ForSequenceClassification]); record others with "
        "memfathom capture");
  require_sequence_length(settings);
  auto model = std::make_shared<AudioModel>();
  model->settings = settings;
  model->config = read_plan(config, settings);
  {
    const PathScope scope(builder, config.at("model_type").as_string());
    make_parts(builder, model->config, *model);
  }
  const AudioConfig& cfg = model->config;
  model->projector = make_linear(builder, "projector", cfg.hidden, cfg.projection);
  const HeadScope head(builder);
  const std::int64_t labels = label_count(config, 2);
  model->classifier = make_linear(builder, "classifier", cfg.projection, labels, {.head = true});
  return make_image_network(builder.session(), settings,
                            [model](const Tensor& x) { return (*model)(x); },
                            {{settings.sequence_length}, {labels}, LossKind::kCrossEntropy});
}

}  // namespace memfathom

// EncoderLayer: the pre-norm transformer block that transformers' ViT, CLIP, SigLIP, BEiT and DINO
// share.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "core/document.h"
#include "estimator/models/blocks/attention.h"
#include "estimator/models/blocks/pass.h"
#include "kernels/framework/layers/linear.h"
#include "kernels/framework/layers/normalization.h"
#include "kernels/framework/ops/activation.h"

namespace memfathom {

// What the families call their parts.
struct EncoderNames {
  std::string_view attention, output, first_norm, second_norm;
  std::string_view first_scale = "layer_scale1.lambda1", second_scale = "layer_scale2.lambda1";
};

struct EncoderConfig {
  std::int64_t hidden = 0, layers = 0, heads = 0, ffn = 0;
  double dropout = 0, attention_dropout = 0;
  bool qkv_bias = true;
  bool key_bias = true;  // of those, the keys' too
  bool output_bias = true, mlp_bias = true;
  bool causal = false;
  bool softmax_in_fp32 = true;   // eager's
  bool layer_scale = false;      // a learnt factor for each feature after either part
  bool gated = false;            // the feed-forward part: silu(gate(x)) * up(x)
  double drop_path = 0;          // samples that skip a part
  bool drop_path_grows = false;  // BEiT: from none in the first layer
  Activation activation = Activation::kGelu;
  EncoderNames names;

  std::int64_t head_size() const { return hidden / heads; }
};

// The keys that all spell alike; the rest is the caller's.
EncoderConfig read_encoder_config(const Node& config, const EncoderConfig& defaults);

class EncoderLayer {
 public:
  EncoderLayer(Builder& builder, const EncoderConfig& cfg, const ModelSettings& settings);

  Tensor operator()(const Tensor& x, const Pass& pass) const;

 private:
  Attended attention(const Tensor& x, const Pass& pass) const;
  Tensor feed_forward(const Tensor& x) const;
  // What a part gives before the residual is added.
  Tensor closed(Tensor x, const Tensor& scale) const;

  EncoderConfig config_;
  AttentionStyle style_;
  Linear q_, k_, v_, output_, first_, up_, second_;
  Tensor first_scale_, second_scale_;
  LayerNorm first_norm_, second_norm_;
};

// `layers` of them, one BlockScope each, under names like encoder.layers.3.
// transformers lets embeddings of images require a gradient before reentrant checkpoints only,
// where nothing would learn without it; those of tokens before every kind.
inline void prepare_image_embeddings(const ModelSettings& settings, Tensor& embeddings) {
  if (settings.checkpoint_reentrant) prepare_embeddings(settings, embeddings);
}

std::vector<EncoderLayer> make_encoder_layers(Builder& builder, std::string_view name,
                                              const EncoderConfig& cfg,
                                              const ModelSettings& settings);

}  // namespace memfathom

// T5Stack: one side of T5: blocks that share the relative position bias of the first.
#pragma once

#include <cstdint>
#include <vector>

#include "core/document.h"
#include "estimator/models/blocks/attention.h"
#include "estimator/models/blocks/feed_forward.h"
#include "estimator/models/blocks/norm_layer.h"
#include "estimator/models/blocks/pass.h"
#include "estimator/models/blocks/settings.h"
#include "kernels/framework/layers/builder.h"
#include "kernels/framework/layers/linear.h"

namespace memfathom {

struct T5Config {
  std::int64_t hidden = 0, layers = 0, decoder_layers = 0, heads = 0, head_size = 0, ffn = 0,
               vocabulary = 0;
  std::int64_t buckets = 32;
  bool gated = false, tied = true, scales_output = true, encoder_only = false;
  double dropout = 0.1;
  Activation activation = Activation::kRelu;
};

T5Config read_t5_config(const Node& config, const ModelSettings& settings);

class T5Attention {
 public:
  T5Attention(Builder& builder, const char* name, const T5Config& cfg, const AttentionStyle& style,
              bool has_bias, bool checkpointed);

  // The first layer that is given no bias makes one, and those after it get it.
  Attended operator()(const Tensor& x, const Tensor& source, const Tensor& mask,
                      Tensor& bias) const;

 private:
  // [1, heads, queries, keys]: from this layer's table, or zeros where it has none.
  Tensor make_bias(const Tensor& q, const Tensor& k) const;

  bool checkpointed_;
  std::int64_t head_size_;
  AttentionStyle style_;
  Linear q_, k_, v_, output_;
  Tensor table_;
};

// What a block is given beside its input.
struct T5Pass {
  Tensor mask, cross_mask;
  Tensor encoded;  // of a decoder: the encoder's result
};

// What blocks hand on beside their result; made in the first.
struct T5Biases {
  Tensor self, cross;
};

class T5Block {
 public:
  T5Block(Builder& builder, const T5Config& cfg, const AttentionStyle& style,
          const AttentionStyle& cross_style, bool decoder, bool first, bool checkpointed);

  Tensor operator()(const Tensor& x, const T5Pass& pass, T5Biases& biases) const;

 private:
  Tensor feed_forward(const Tensor& x) const;

  T5Config config_;
  T5Attention self_;
  NormLayer self_norm_;
  std::vector<T5Attention> cross_;  // of a decoder: one
  NormLayer cross_norm_;
  Linear first_, gate_, second_;
  NormLayer mlp_norm_;
};

class T5Stack {
 public:
  T5Stack(Builder& builder, const char* name, const T5Config& cfg, const ModelSettings& settings,
          bool decoder);

  // Token ids to hidden states. `encoded` and `padding` (of the encoder's tokens) where there are
  // any.
  Tensor operator()(const Tensor& table, const Tensor& ids, const Tensor& encoded,
                    const Tensor& padding) const;

 private:
  Tensor run(const T5Block& block, const Tensor& x, const T5Pass& pass, T5Biases& biases) const;

  T5Config config_;
  ModelSettings settings_;
  bool decoder_;
  std::vector<T5Block> blocks_;
  NormLayer norm_;
};

}  // namespace memfathom

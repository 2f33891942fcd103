// LitgptConfig: what LitGPT's configuration says of a model, read from the Hugging Face config of
// the same model.
#pragma once

#include <cstdint>

#include "core/document.h"
#include "estimator/models/blocks/norm_layer.h"
#include "kernels/framework/ops/activation.h"

namespace memfathom {

struct LitgptConfig {
  std::int64_t hidden = 0, layers = 0, heads = 0, groups = 0, head_size = 0, ffn = 0,
               vocabulary = 0, rotary = 0;
  NormKind norm = NormKind::kRmsWide;
  Activation activation = Activation::kSilu;
  bool gated = true;      // the MLP: act(fc_1(x)) * fc_2(x)
  bool bias = false;      // of all matrices but the head
  bool qkv_bias = false;  // of q, k and v at least
  bool head_bias = false;
  bool parallel = false;     // attention and MLP read the same input
  bool shared_norm = false;  // and the same norm of it
  bool scaled_embeddings = false;

  std::int64_t qkv_width() const { return (heads + 2 * groups) * head_size; }
};

LitgptConfig read_litgpt_config(const Node& config);

}  // namespace memfathom

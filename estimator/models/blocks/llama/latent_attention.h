// LatentAttention: DeepSeek's attention, whose keys and values unfold from a latent vector of each
// token; the cache holds the latent.
#pragma once

#include "estimator/models/blocks/attention.h"
#include "estimator/models/blocks/llama/llama_config.h"
#include "estimator/models/blocks/norm_layer.h"
#include "estimator/models/blocks/pass.h"
#include "kernels/framework/layers/linear.h"

namespace memfathom {

class LatentAttention {
 public:
  LatentAttention(Builder& builder, const LlamaConfig& cfg, const AttentionStyle& style);

  Attended operator()(const Tensor& x, const Pass& pass, std::size_t index) const;

 private:
  Tensor queries(const Tensor& x) const;
  void turn(Tensor& q, Tensor& k, const RotaryTables& tables) const;

  LlamaConfig config_;
  AttentionStyle style_;
  Linear q_, q_fold_, q_unfold_, kv_fold_, kv_unfold_, output_;
  NormLayer q_norm_, kv_norm_;
};

}  // namespace memfathom

// LlamaAttention: grouped-query attention with rotary positions, as the Llama variants have it.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "estimator/models/blocks/attention.h"
#include "estimator/models/blocks/llama/llama_config.h"
#include "estimator/models/blocks/norm_layer.h"
#include "estimator/models/blocks/pass.h"
#include "kernels/framework/layers/linear.h"

namespace memfathom {

class LlamaAttention {
 public:
  LlamaAttention(Builder& builder, const LlamaConfig& cfg, const LlamaLayer& layer,
                 const AttentionStyle& style);

  Attended operator()(const Tensor& x, const Pass& pass, std::size_t index) const;

 private:
  void project(const Tensor& x, Tensor& q, Tensor& k, Tensor& v) const;
  Tensor normed(const Tensor& projected, const std::vector<NormLayer>& norms) const;
  NamedParts turn(Tensor& q, Tensor& k, const RotaryTables& tables) const;

  LlamaConfig config_;
  LlamaLayer layer_;
  AttentionStyle style_;
  Linear q_, k_, v_, output_;
  std::vector<NormLayer> q_norms_, k_norms_;  // one, or one for each head
  std::optional<Rotary> rotary_;
};

}  // namespace memfathom

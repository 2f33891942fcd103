// LlamaBlock: attention and MLP, or experts, with the norms around them, as the Llama variants have
// them.
#pragma once

#include <cstdint>
#include <optional>
#include <variant>

#include "estimator/models/blocks/experts.h"
#include "estimator/models/blocks/feed_forward.h"
#include "estimator/models/blocks/llama/latent_attention.h"
#include "estimator/models/blocks/llama/llama_attention.h"

namespace memfathom {

class LlamaBlock {
 public:
  LlamaBlock(Builder& builder, const LlamaConfig& cfg, const LlamaLayer& layer,
             const AttentionStyle& style, std::size_t index);

  Tensor operator()(const Tensor& x, const Pass& pass) const;

 private:
  void make_mlp(Builder& builder, bool sparse);
  Tensor mlp(const Tensor& x) const;
  // residual + x, with the family's factor or dropout on x.
  Tensor joined(const Tensor& residual, const Tensor& x) const;

  LlamaConfig config_;
  std::size_t index_;
  std::variant<LlamaAttention, LatentAttention> attention_;
  GatedMlp gated_mlp_;
  FusedGatedMlp fused_mlp_;
  PlainMlp plain_mlp_;
  std::optional<SparseMlp> sparse_mlp_;
  NormLayer input_norm_, attention_norm_, mlp_norm_, output_norm_;
};

}  // namespace memfathom

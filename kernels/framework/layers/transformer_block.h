// TransformerBlock: one block in GPT-2, Llama, BERT, ViT, DiT or torch.nn style.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "core/enum_names.h"
#include "kernels/framework/layers/feed_forward.h"
#include "kernels/framework/layers/normalization.h"
#include "kernels/framework/layers/self_attention.h"

namespace memfathom {

enum class BlockStyle : std::uint8_t { kGpt2, kLlama, kVit, kDit, kBert, kTorch };

template <>
inline constexpr auto kEnumNames<BlockStyle> =
    std::to_array<EnumName<BlockStyle>>({{BlockStyle::kGpt2, "gpt2"},
                                         {BlockStyle::kLlama, "llama"},
                                         {BlockStyle::kVit, "vit"},
                                         {BlockStyle::kDit, "dit"},
                                         {BlockStyle::kBert, "bert"},
                                         {BlockStyle::kTorch, "torch"}});

std::optional<BlockStyle> parse_block_style(std::string_view name);

struct TransformerBlockOptions {
  BlockStyle style = BlockStyle::kLlama;
  std::int64_t hidden = 0, heads = 1, kv_heads = 1, inner = 0;
  Activation activation = Activation::kGelu;
  double dropout = 0;
  bool norm_first = false;  // kTorch
  AttentionImplementation implementation = AttentionImplementation::kAuto;
};

class TransformerBlock {
 public:
  TransformerBlock(Builder& builder, const TransformerBlockOptions& options);
  Tensor operator()(const Tensor& x) const;

 private:
  Tensor pre_norm(const Tensor& x) const;
  Tensor post_norm(const Tensor& x) const;
  Tensor modulated(const Tensor& x) const;
  Tensor torch_layer(const Tensor& x) const;
  Tensor attend(const Tensor& x) const;
  Tensor feed_forward(const Tensor& x) const;
  Tensor normed(int which, const Tensor& x) const;

  TransformerBlockOptions options_;
  LayerNorm norms_[2];
  RmsNorm rms_norms_[2];
  SelfAttention attention_;
  MultiheadAttention multihead_;
  Mlp mlp_;
  GatedUnit gated_mlp_;
  Linear modulation_;  // kDit: six shifts, scales and gates from the condition
};

}  // namespace memfathom

// QwenVisionBlock: a block of Qwen's vision towers: all images in one row, attention for each
// apart.
#pragma once

#include <cstdint>
#include <vector>

#include "estimator/models/blocks/attention.h"
#include "estimator/models/blocks/pass.h"
#include "estimator/models/families/multimodal/qwen_vl/qwen_vision_config.h"
#include "kernels/framework/layers/linear.h"

namespace memfathom {

class QwenVisionBlock {
 public:
  QwenVisionBlock(Builder& builder, const QwenVisionConfig& cfg, const ModelSettings& settings);

  // The lengths that attention sees at a time; they live as long as the block is used.
  void see(const std::vector<std::int64_t>& lengths) { lengths_ = &lengths; }

  // x [patches, hidden]; pass.rotary is [1, patches, head size] in fp32.
  Tensor operator()(const Tensor& x, const Pass& pass) const;

 private:
  Tensor attention(const Tensor& x, const RotaryTables& tables) const;
  Tensor mlp(const Tensor& x) const;

  QwenVisionConfig config_;
  AttentionStyle style_;
  NormLayer first_norm_, second_norm_;
  Linear qkv_, output_, gate_, first_, second_;
  const std::vector<std::int64_t>* lengths_ = nullptr;
};

}  // namespace memfathom

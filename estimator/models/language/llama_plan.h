// LlamaPlan: what tells the families of Llama's kind apart, read from their configs.
#pragma once

#include <cstdint>

#include "core/document.h"
#include "estimator/models/language/norm_layer.h"
#include "estimator/models/settings.h"
#include "kernels/ops/activation.h"

namespace memfathom {

enum class QkNorm : std::uint8_t { kNone, kPerHead, kWhole };
// Where a block's norms stand: before each part (Llama), after it (OLMo 2), or both (Gemma 2).
enum class NormPlacement : std::uint8_t { kBefore, kAfter, kBoth };

struct LlamaPlan {
  std::int64_t hidden = 0, layers = 0, heads = 0, kv_heads = 0, head_size = 0, ffn = 0,
               vocabulary = 0;
  std::int64_t max_positions = 2048;
  std::int64_t rotary = 0;
  std::int64_t window = 0;          // sliding window; 0: none
  bool mixes_windows = false;       // not in every layer: see has_window()
  bool alternates_windows = false;  // in every second layer
  std::int64_t full_layers = 0;     // without one, before those that have one
  bool qkv_bias = false, output_bias = false, mlp_bias = false;
  bool fused_projections = false;
  bool joins_rotated = false;    // Phi 3: see rotate_and_join
  bool rotates_in_fp32 = false;  // OLMo: fp32 tables, the rotated heads cast back
  bool tied_by_default = false;
  bool scaled_embedding_buffer = false;
  NormKind norm = NormKind::kRms;
  QkNorm qk_norm = QkNorm::kNone;
  NormPlacement placement = NormPlacement::kBefore;
  Activation activation = Activation::kSilu;
  double attention_dropout = 0, residual_dropout = 0;
  double attention_scale = 0;  // 0: 1 / sqrt(head size)
  double attention_softcap = 0, logits_softcap = 0;
  double embedding_multiplier = 1, residual_multiplier = 1, logits_divisor = 1;
  std::int64_t experts = 0, experts_per_token = 0;
  std::int64_t shards = 1;       // GPUs among which the positions between the products are divided
  bool grouped_experts = false;  // the matrices of all experts in one tensor
};

// Whether a layer of a model that mixes both has the window.
inline bool has_window(const LlamaPlan& plan, std::int64_t layer) {
  if (!plan.mixes_windows) return false;
  return plan.alternates_windows ? layer % 2 == 0 : layer >= plan.full_layers;
}

LlamaPlan read_llama_plan(const Node& config, const ModelSettings& settings);

}  // namespace memfathom

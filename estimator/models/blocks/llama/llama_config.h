// LlamaConfig: what tells the families of Llama's kind apart, read from their configs.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/document.h"
#include "estimator/models/blocks/experts.h"
#include "estimator/models/blocks/norm_layer.h"
#include "estimator/models/blocks/rotary.h"
#include "estimator/models/blocks/settings.h"
#include "kernels/framework/ops/activation.h"

namespace memfathom {

// kEachHead: a norm of its own for every head.
enum class QkNorm : std::uint8_t { kNone, kPerHead, kWhole, kEachHead };
// Where a block's norms stand: before each part (Llama), after it (OLMo 2), or both (Gemma 2).
enum class NormPlacement : std::uint8_t { kBefore, kAfter, kBoth };

// How queries and keys are rotated by their positions.
enum class RotaryStyle : std::uint8_t {
  kPlain,
  kJoined,      // Phi 3: see rotate_and_join
  kNamedParts,  // StableLM: see rotate_named_parts
  kPairs,       // GLM: neighbours are a pair; see rotate_pairs
  kWholePairs,  // Helium: the same for whole heads, which nothing is joined to
  kWidePairs,   // ERNIE 4.5: those in fp32, cast back
  kHalves,      // gpt-oss: tables of half a head; see rotate_apart
  kWideTables,  // OLMo: fp32 tables, the rotated heads cast back
  kWideHeads,   // Cohere: heads widened to fp32, and cast back
};

enum class MlpForm : std::uint8_t { kGated, kFusedGated, kPlain };

// What differs between the layers of one model.
struct LlamaLayer {
  bool windowed = false;  // sees the tokens of its sliding window only
  bool rotated = true;    // knows positions by rotated queries and keys
  bool sparse = false;    // experts in place of the MLP
};

// What a family calls its parts; adapters are aimed at these names.
struct LlamaNames {
  const char* attention = "self_attn";
  const char* qkv = "qkv_proj";
  const char* output = "o_proj";
  const char* mlp = "mlp";
  const char* gate = "gate_proj";
  const char* up = "up_proj";
  const char* down = "down_proj";
};

// DeepSeek's attention: keys and values unfolded from a latent vector of each token.
struct LatentConfig {
  std::int64_t kv_rank = 0;                         // of the latent; 0: ordinary attention
  std::int64_t q_rank = 0;                          // of the queries' own; 0: they have none
  std::int64_t plain = 0, rotated = 0, values = 0;  // extents of a head
  bool pairs = true;                                // neighbours are rotated, not halves
  bool complex = false;                             // V2: as complex numbers, in fp32
};

struct LlamaConfig {
  std::int64_t hidden = 0, layers = 0, heads = 0, kv_heads = 0, head_size = 0, ffn = 0,
               vocabulary = 0;
  LlamaNames names;
  std::int64_t max_positions = 2048;
  std::int64_t rotary = 0;
  bool rotary_in_layers = false;  // each has its own, not one for the model
  RotaryForm rotary_form = RotaryForm::kMade;
  std::int64_t window = 0;     // sliding window; 0: none
  bool mixes_windows = false;  // not in every layer: see LlamaLayer
  bool two_rotaries = false;   // layers with a window have tables of their own
  bool qkv_bias = false, output_bias = false, mlp_bias = false;
  bool fused_qkv = false;
  bool norms_rotated = false;   // Hunyuan: queries and keys are normed after their rotation
  bool scaled_queries = false;  // Ministral 3: by a factor of each position
  bool sinks = false;           // gpt-oss: see AttentionStyle
  bool parallel = false;        // attention and MLP read the same norm, and are added at once
  bool keeps_attention_locals =
      false;  // StableLM: what the attention read and gave has names to the end
  bool tied_by_default = false;
  bool scaled_embedding_buffer = false;
  RotaryStyle rotary_style = RotaryStyle::kPlain;
  MlpForm mlp = MlpForm::kGated;
  NormKind norm = NormKind::kRms;
  QkNorm qk_norm = QkNorm::kNone;
  NormPlacement placement = NormPlacement::kBefore;
  Activation activation = Activation::kSilu;
  double attention_dropout = 0, residual_dropout = 0, mlp_dropout = 0, embedding_dropout = 0;
  double attention_scale = 0;  // 0: 1 / sqrt(head size)
  double attention_softcap = 0, logits_softcap = 0;
  // Factors of the embeddings and of what is added to the residual: multiplied by even if 1.
  std::optional<double> embedding_multiplier, residual_multiplier;
  bool scaled_logits = false;
  LatentConfig latent;
  ExpertsConfig experts;         // of the layers that have some
  bool grouped_experts = false;  // the matrices of all experts in one tensor
  std::int64_t shards = 1;       // GPUs among which the positions between the products are divided
};

LlamaConfig read_llama_config(const Node& config, const ModelSettings& settings);
std::vector<LlamaLayer> read_llama_layers(const Node& config, const LlamaConfig& cfg);

}  // namespace memfathom

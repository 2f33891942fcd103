// TransformersPolicy: what the imitated release of transformers does differently from others.
//
// Every version of transformers at which something changed has a name here, except the dates of
// single families, which stand in their rows (blocks/model_family.h, llama_variant.cc). Models ask
// by name, never for a number.
#pragma once

#include <algorithm>

#include "core/version.h"

namespace memfathom {

// Past key values became a cache object; before, they were tuples, copied whole at each step.
inline constexpr Version kCacheObjects{4, 36};
// Logits keep their type, and generation computes those of the last position only. Before, every
// forward of most families made fp32 logits of all positions.
inline constexpr Version kLogitsKeepTheirType{4, 45};
// Gemma 2's capped scores are computed eagerly unless another way is asked for; before, by a kernel
// that does not cap them.
inline constexpr Version kCapsScoresEagerly{4, 45};
// The causal loss pads the labels; before, it shifted, and so copied, the logits (4.46.3 to 4.48.0
// and 4.49.0 to 4.51.3 of loss_utils.py).
inline constexpr Version kLossPadsLabels{4, 49};
// OPT shares the attention of the other families; before, it copied queries, keys and values head
// by head, and raised the scores to the least number of their type, which keeps them (4.48's
// modeling_opt.py has _shape(...).contiguous() and torch.max, 4.49's neither).
inline constexpr Version kOptSharesAttention{4, 49};
// Eager encoders mask padding only. Before, scores were always masked, by a row of the parameters'
// type: under autocast that makes them fp32.
inline constexpr Version kEncodersMaskPaddingOnly{4, 56};
// The matrices of all experts are two tensors; before, each expert was a module of its own.
inline constexpr Version kGroupedExperts{5, 0};
// T5 ties its embeddings whatever the configuration says.
inline constexpr Version kT5AlwaysTied{5, 0};
// Gemma's embedding factor is a buffer of the embedding's module.
inline constexpr Version kEmbeddingScaleIsABuffer{5, 0};
// from_pretrained() loads weights in the type that the configuration names; before, in fp32.
inline constexpr Version kLoadsConfiguredType{5, 0};

// When the rotary positions of one family changed, read off the releases 4.35 to 4.48.
struct RotaryHistory {
  Version computed;   // in each pass; before, gathered from tables of all positions
  Version no_tables;  // the tables are gone, too
  Version per_model;  // once for all layers
};

class TransformersPolicy {
 public:
  TransformersPolicy() = default;  // the newest release that is imitated
  explicit TransformersPolicy(Version version) : version_(version) {}

  Version version() const { return version_; }

  // A family cannot run on a release that does not have it.
  TransformersPolicy at_least(Version first) const {
    return TransformersPolicy(std::max(version_, first));
  }

  bool has_cache_objects() const { return version_ >= kCacheObjects; }
  bool upcasts_logits() const { return version_ < kLogitsKeepTheirType; }
  bool generates_all_logits() const { return version_ < kLogitsKeepTheirType; }
  bool caps_scores_eagerly() const { return version_ >= kCapsScoresEagerly; }
  bool loss_shifts_logits() const { return version_ < kLossPadsLabels; }
  bool opt_has_its_own_attention() const { return version_ < kOptSharesAttention; }
  bool encoders_always_mask() const { return version_ < kEncodersMaskPaddingOnly; }
  bool groups_experts() const { return version_ >= kGroupedExperts; }
  bool always_ties_t5() const { return version_ >= kT5AlwaysTied; }
  bool embedding_scale_is_a_buffer() const { return version_ >= kEmbeddingScaleIsABuffer; }
  bool loads_configured_type() const { return version_ >= kLoadsConfiguredType; }

  bool gathers_rotary(const RotaryHistory& history) const { return version_ < history.computed; }
  bool keeps_rotary_tables(const RotaryHistory& history) const {
    return version_ < history.no_tables;
  }
  bool has_rotary_in_layers(const RotaryHistory& history) const {
    return version_ < history.per_model;
  }

 private:
  Version version_{5, 22};
};

}  // namespace memfathom

// LlamaVariant: the families whose models are Llama's with differences; a row each.
//
// To add one, add its row and its function to llama_variant.cc; the registry takes both from there.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "estimator/models/blocks/llama/llama_config.h"
#include "estimator/models/blocks/model_family.h"

namespace memfathom {

struct LlamaVariant {
  std::string_view type;
  // Sets what differs from Llama; nullptr: nothing does.
  void (*read)(const Node& config, const ModelSettings& settings, LlamaConfig& cfg) = nullptr;
  FamilyTraits family;
  RotaryHistory rotary;
  double rotary_fraction = 1;       // of a head, where the config does not say
  std::int64_t window_pattern = 0;  // every so many layers one has no window; 0: see full_layers
  bool window_pattern_begins_full = false;  // CWM: the first layer of a period has no window
  std::int64_t full_layers = 28;            // without a window, before those with one
  bool windows_in_even_layers = false;      // Qwen2-MoE: of those before full_layers
  bool has_no_rope_layers = false;          // no_rope_layers
  bool rotary_in_windows_only = false;      // only layers with a window know positions
};

// The family that model_type names; only for configs of these families.
const LlamaVariant& llama_variant(const Node& config);

std::span<const LlamaVariant> llama_variants();
bool is_llama_variant(const Node& config);

}  // namespace memfathom

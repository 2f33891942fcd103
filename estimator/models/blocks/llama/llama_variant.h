// LlamaVariant: the table of families whose models are Llama's with differences.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "estimator/models/blocks/llama/llama_config.h"

namespace memfathom {

// When a family's positions changed in transformers, read off its releases 4.35 to 4.48.
struct RotaryHistory {
  int made = 0;       // in each pass; before, gathered from tables of all positions
  int tables = 0;     // the tables are gone, too
  int per_model = 0;  // once for all layers
};

struct LlamaVariant {
  std::string_view type;
  // Sets what differs from Llama; nullptr: nothing does.
  void (*read)(const Node& config, const ModelSettings& settings, LlamaConfig& cfg) = nullptr;
  int since = 0;  // the library's first version that has it, as 451 for 4.51
  RotaryHistory rotary;
  double rotary_fraction = 1;       // of a head, where the config does not say
  std::int64_t window_pattern = 0;  // every so many layers one has no window; 0: see full_layers
  std::int64_t full_layers = 28;    // without a window, before those with one
  bool has_no_rope_layers = false;  // no_rope_layers
  bool rotary_in_windows_only = false;  // only layers with a window know positions
};

// The family that model_type names; only for configs of these families.
const LlamaVariant& llama_variant(const Node& config);

std::vector<std::string_view> llama_variant_types();

}  // namespace memfathom

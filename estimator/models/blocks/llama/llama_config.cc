#include "estimator/models/blocks/llama/llama_config.h"

#include <string>

#include "estimator/models/blocks/config_reader.h"
#include "estimator/models/blocks/llama/llama_variant.h"
#include "estimator/models/blocks/rotary.h"

namespace memfathom {
namespace {

void read_sizes(const Node& config, double rotary_fraction, LlamaConfig& cfg) {
  cfg.hidden = required_count(config, {"hidden_size"});
  cfg.layers = required_count(config, {"num_hidden_layers"}, kMaxLayers);
  cfg.heads = required_count(config, {"num_attention_heads"});
  cfg.kv_heads = count_or(config, {"num_key_value_heads"}, cfg.heads);
  cfg.ffn = required_count(config, {"intermediate_size"});
  cfg.vocabulary = required_count(config, {"vocab_size"}, kMaxTokens);
  cfg.max_positions = count_or(config, {"max_position_embeddings"}, 2048, kMaxTokens);
  if (find_any(config, {"head_dim"}) == nullptr) {
    require_divides(config, {"num_attention_heads"}, cfg.heads, cfg.hidden, "hidden_size");
  }
  cfg.head_size = count_or(config, {"head_dim"}, cfg.hidden / cfg.heads);
  require_divides(config, {"num_key_value_heads"}, cfg.kv_heads, cfg.heads, "num_attention_heads");
  cfg.rotary = rotary_size(config, cfg.head_size, rotary_fraction);
}

// A list with one entry for each layer, as newer configs have them; nullptr: none.
const Node* layer_list(const Node& config, const char* key, std::int64_t layers) {
  const Node* found = find_any(config, {key});
  if (found == nullptr) return nullptr;
  if (static_cast<std::int64_t>(found->items().size()) < layers)
    found->refuse("it must have an entry for each of num_hidden_layers");
  return found;
}

bool holds(const Node& list, std::int64_t number) {
  for (const Node& item : list.items()) {
    if (item.as_int(0, kMaxLayers) == number) return true;
  }
  return false;
}

}  // namespace

LlamaConfig read_llama_config(const Node& config, const ModelSettings& settings) {
  const LlamaVariant& variant = llama_variant(config);
  LlamaConfig cfg;
  read_sizes(config, variant.rotary_fraction, cfg);
  const TransformersPolicy& library = settings.transformers;
  cfg.rotary_in_layers = library.has_rotary_in_layers(variant.rotary);
  cfg.rotary_form = library.gathers_rotary(variant.rotary)        ? RotaryForm::kGathered
                    : library.keeps_rotary_tables(variant.rotary) ? RotaryForm::kComputedWithTables
                                                                  : RotaryForm::kMade;
  cfg.shards = settings.sequence_shards;
  cfg.qkv_bias = cfg.output_bias = flag_or(config, {"attention_bias"}, false);
  cfg.mlp_bias = flag_or(config, {"mlp_bias"}, false);
  cfg.activation = activation_or(config, {"hidden_act"}, "silu");
  cfg.attention_dropout = probability_or(config, {"attention_dropout"}, 0);
  if (const Node* first = find_any(config, {"first_k_dense_replace"}))
    cfg.experts.first_layer = first->as_int(0, kMaxLayers);
  if (variant.read != nullptr) variant.read(config, settings, cfg);
  return cfg;
}

std::vector<LlamaLayer> read_llama_layers(const Node& config, const LlamaConfig& cfg) {
  const LlamaVariant& variant = llama_variant(config);
  const Node* types = cfg.mixes_windows ? layer_list(config, "layer_types", cfg.layers) : nullptr;
  const Node* rotated =
      variant.has_no_rope_layers ? layer_list(config, "no_rope_layers", cfg.layers) : nullptr;
  // EXAONE 4 names a pattern like "LLLG" beside its layer_types.
  const Node* period = find_any(config, {"sliding_window_pattern", "_sliding_window_pattern"});
  const std::int64_t pattern = period == nullptr || (types != nullptr && period->is_string())
                                   ? variant.window_pattern
                                   : period->as_int(1, kMaxLayers);
  const Node* before = find_any(config, {"max_window_layers"});
  const std::int64_t full = before != nullptr ? before->as_int(0, kMaxLayers) : variant.full_layers;
  const std::int64_t interval = count_or(config, {"no_rope_layer_interval"}, 4);
  const std::int64_t step = count_or(config, {"decoder_sparse_step"}, 1);
  const Node* dense = find_any(config, {"mlp_only_layers"});
  std::vector<LlamaLayer> layers(static_cast<std::size_t>(cfg.layers));
  for (std::int64_t i = 0; i < cfg.layers; ++i) {
    LlamaLayer& layer = layers[static_cast<std::size_t>(i)];
    if (types != nullptr) {
      layer.windowed =
          types->items()[static_cast<std::size_t>(i)].as_string() == "sliding_attention";
    } else if (cfg.mixes_windows) {
      const std::int64_t place = variant.window_pattern_begins_full ? i : i + 1;
      layer.windowed = variant.windows_in_even_layers ? i % 2 == 0 && i < full
                       : pattern > 1                  ? place % pattern != 0
                                                      : i >= full;
    }
    if (variant.has_no_rope_layers) {
      layer.rotated = rotated != nullptr
                          ? rotated->items()[static_cast<std::size_t>(i)].as_int(0, 1) != 0
                          : (i + 1) % interval != 0;
      if (types == nullptr) layer.windowed = cfg.mixes_windows && !layer.rotated;
    }
    if (variant.rotary_in_windows_only && cfg.window > 0) layer.rotated = layer.windowed;
    layer.sparse = cfg.experts.experts > 0 && (i + 1) % step == 0 &&
                   (dense == nullptr || !holds(*dense, i)) && i >= cfg.experts.first_layer;
  }
  return layers;
}

}  // namespace memfathom

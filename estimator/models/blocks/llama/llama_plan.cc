#include "estimator/models/blocks/llama/llama_plan.h"

#include <string>

#include "estimator/models/blocks/config_reader.h"
#include "estimator/models/blocks/llama/llama_kin.h"
#include "estimator/models/blocks/rotary.h"

namespace memfathom {
namespace {

void read_sizes(const Node& config, double turned_part, LlamaPlan& plan) {
  plan.hidden = required_count(config, {"hidden_size"});
  plan.layers = required_count(config, {"num_hidden_layers"}, kMostLayers);
  plan.heads = required_count(config, {"num_attention_heads"});
  plan.kv_heads = count_or(config, {"num_key_value_heads"}, plan.heads);
  plan.ffn = required_count(config, {"intermediate_size"});
  plan.vocabulary = required_count(config, {"vocab_size"}, kMostTokens);
  plan.max_positions = count_or(config, {"max_position_embeddings"}, 2048, kMostTokens);
  if (find_any(config, {"head_dim"}) == nullptr) {
    require_divides(config, {"num_attention_heads"}, plan.heads, plan.hidden, "hidden_size");
  }
  plan.head_size = count_or(config, {"head_dim"}, plan.hidden / plan.heads);
  require_divides(config, {"num_key_value_heads"}, plan.kv_heads, plan.heads,
                  "num_attention_heads");
  plan.rotary = rotary_size(config, plan.head_size, turned_part);
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
    if (item.as_int(0, kMostLayers) == number) return true;
  }
  return false;
}

}  // namespace

LlamaPlan read_llama_plan(const Node& config, const ModelSettings& settings) {
  const LlamaKin& kin = llama_kin(config);
  LlamaPlan plan;
  read_sizes(config, kin.turned_part, plan);
  const int version = settings.transformers_version;
  plan.rotary_in_layers = version < kin.rotary.per_model;
  plan.rotary_form = version < kin.rotary.made     ? RotaryForm::kGathered
                     : version < kin.rotary.tables ? RotaryForm::kMadeBesideTables
                                                   : RotaryForm::kMade;
  plan.shards = settings.sequence_shards;
  plan.qkv_bias = plan.output_bias = flag_or(config, {"attention_bias"}, false);
  plan.mlp_bias = flag_or(config, {"mlp_bias"}, false);
  plan.activation = activation_or(config, {"hidden_act"}, "silu");
  plan.attention_dropout = probability_or(config, {"attention_dropout"}, 0);
  if (const Node* first = find_any(config, {"first_k_dense_replace"}))
    plan.experts.first_layer = first->as_int(0, kMostLayers);
  if (kin.read != nullptr) kin.read(config, settings, plan);
  return plan;
}

std::vector<LlamaLayer> read_llama_layers(const Node& config, const LlamaPlan& plan) {
  const LlamaKin& kin = llama_kin(config);
  const Node* types = plan.mixes_windows ? layer_list(config, "layer_types", plan.layers) : nullptr;
  const Node* turned =
      kin.some_turned ? layer_list(config, "no_rope_layers", plan.layers) : nullptr;
  const std::int64_t pattern =
      count_or(config, {"sliding_window_pattern", "_sliding_window_pattern"}, kin.window_pattern);
  const Node* before = find_any(config, {"max_window_layers"});
  const std::int64_t full = before != nullptr ? before->as_int(0, kMostLayers) : kin.full_layers;
  const std::int64_t unturned = count_or(config, {"no_rope_layer_interval"}, 4);
  const std::int64_t step = count_or(config, {"decoder_sparse_step"}, 1);
  const Node* dense = find_any(config, {"mlp_only_layers"});
  std::vector<LlamaLayer> layers(static_cast<std::size_t>(plan.layers));
  for (std::int64_t i = 0; i < plan.layers; ++i) {
    LlamaLayer& layer = layers[static_cast<std::size_t>(i)];
    if (types != nullptr) {
      layer.windowed =
          types->items()[static_cast<std::size_t>(i)].as_string() == "sliding_attention";
    } else if (plan.mixes_windows) {
      layer.windowed = pattern > 1 ? (i + 1) % pattern != 0 : i >= full;
    }
    if (kin.some_turned) {
      layer.turned = turned != nullptr
                         ? turned->items()[static_cast<std::size_t>(i)].as_int(0, 1) != 0
                         : (i + 1) % unturned != 0;
    }
    if (kin.turned_in_windows) layer.turned = layer.windowed;
    layer.sparse = plan.experts.experts > 0 && (i + 1) % step == 0 &&
                   (dense == nullptr || !holds(*dense, i)) && i >= plan.experts.first_layer;
  }
  return layers;
}

}  // namespace memfathom

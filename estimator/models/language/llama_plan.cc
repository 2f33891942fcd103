#include "estimator/models/language/llama_plan.h"

#include <cmath>
#include <string>
#include <string_view>

#include "estimator/models/language/config_reader.h"
#include "estimator/models/language/rotary.h"

namespace memfathom {
namespace {

void read_sizes(const Node& config, LlamaPlan& plan) {
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
  plan.rotary = rotary_size(config, plan.head_size, 1);
}

// The library's default applies only where the key is absent; null switches the cap off.
double softcap(const Node& config, std::string_view name, double fallback) {
  const Node* found = config.find(name);
  if (found == nullptr) return fallback;
  return found->is_null() ? 0 : found->as_number(0, 1e9);
}

void read_gemma(const Node& config, LlamaPlan& plan, const ModelSettings& settings, bool second) {
  plan.norm = NormKind::kRmsOne;
  plan.tied_by_default = true;
  plan.scaled_embedding_buffer = settings.transformers_version >= 500;
  plan.embedding_multiplier = std::sqrt(static_cast<double>(plan.hidden));
  plan.activation = activation_or(config, {"hidden_activation", "hidden_act"}, "gelu_pytorch_tanh");
  if (!second) return;
  plan.placement = NormPlacement::kBoth;
  plan.mixes_windows = plan.alternates_windows = true;
  plan.window = count_or(config, {"sliding_window"}, 4096, kMostTokens);
  plan.attention_scale = 1 / std::sqrt(number_or(config, {"query_pre_attn_scalar"}, 256));
  plan.attention_softcap = softcap(config, "attn_logit_softcapping", 50);
  plan.logits_softcap = softcap(config, "final_logit_softcapping", 30);
}

void read_granite(const Node& config, LlamaPlan& plan) {
  plan.attention_scale = number_or(config, {"attention_multiplier"}, 1);
  plan.embedding_multiplier = number_or(config, {"embedding_multiplier"}, 1);
  plan.residual_multiplier = number_or(config, {"residual_multiplier"}, 1);
  plan.logits_divisor = number_or(config, {"logits_scaling"}, 1);
}

void read_qwen3_experts(const Node& config, LlamaPlan& plan) {
  const Node* dense = find_any(config, {"mlp_only_layers"});
  const bool all_sparse = count_or(config, {"decoder_sparse_step"}, 1) == 1 &&
                          (dense == nullptr || dense->items().empty());
  if (!all_sparse)
    config.refuse("layers without experts (mlp_only_layers, decoder_sparse_step) are not built");
  plan.experts = count_or(config, {"num_experts", "num_local_experts"}, 128, kMostLayers);
  plan.experts_per_token = count_or(config, {"num_experts_per_tok"}, 8, plan.experts);
  plan.ffn = count_or(config, {"moe_intermediate_size"}, 768);
}

}  // namespace

LlamaPlan read_llama_plan(const Node& config, const ModelSettings& settings) {
  const std::string& type = config.at("model_type").as_string();
  LlamaPlan plan;
  read_sizes(config, plan);
  plan.shards = settings.sequence_shards;
  plan.qkv_bias = plan.output_bias = flag_or(config, {"attention_bias"}, false);
  plan.mlp_bias = flag_or(config, {"mlp_bias"}, false);
  plan.activation = activation_or(config, {"hidden_act"}, "silu");
  plan.attention_dropout = probability_or(config, {"attention_dropout"}, 0);
  if (type == "mistral" || type == "mixtral" || type == "phi3") {
    plan.window = count_or(config, {"sliding_window"}, 0, kMostTokens);
    plan.qkv_bias = plan.output_bias = false;
  }
  if (type == "mixtral") {
    plan.experts = required_count(config, {"num_local_experts"}, kMostLayers);
    plan.experts_per_token = count_or(config, {"num_experts_per_tok"}, 2, plan.experts);
  }
  if (type == "qwen3_moe") read_qwen3_experts(config, plan);
  if (type == "qwen2") {
    plan.qkv_bias = true;
    plan.output_bias = false;
  }
  if ((type == "qwen2" || type == "qwen3" || type == "qwen3_moe") &&
      flag_or(config, {"use_sliding_window"}, false)) {
    const Node* first = find_any(config, {"max_window_layers"});
    plan.full_layers = first != nullptr ? first->as_int(0, kMostLayers) : 28;
    plan.mixes_windows = plan.full_layers < plan.layers;
    if (plan.mixes_windows) plan.window = count_or(config, {"sliding_window"}, 4096, kMostTokens);
  }
  if (type == "qwen3" || type == "qwen3_moe") plan.qk_norm = QkNorm::kPerHead;
  if (type == "phi3") {
    plan.fused_projections = true;
    plan.joins_rotated = true;
    plan.residual_dropout = probability_or(config, {"resid_pdrop"}, 0);
  }
  if (type == "gemma" || type == "gemma2") read_gemma(config, plan, settings, type == "gemma2");
  if (type == "granite") read_granite(config, plan);
  plan.rotates_in_fp32 = type == "olmo" || type == "olmo2";
  if (type == "olmo") plan.norm = NormKind::kLayerPlain;
  if (type == "olmo2") {
    plan.norm = NormKind::kRmsWide;
    plan.qk_norm = QkNorm::kWhole;
    plan.placement = NormPlacement::kAfter;
  }
  return plan;
}

}  // namespace memfathom

#include "estimator/models/blocks/llama/llama_variant.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <string>

#include "core/error.h"
#include "estimator/models/blocks/config_reader.h"

namespace memfathom {
namespace {

// The library's default applies only where the key is absent; null switches the cap off.
double softcap(const Node& config, std::string_view name, double fallback) {
  const Node* found = config.find(name);
  if (found == nullptr) return fallback;
  return found->is_null() ? 0 : found->as_number(0, 1e9);
}

void read_window(const Node& config, LlamaConfig& cfg) {
  const Node* given = find_any(config, {"sliding_window"});
  cfg.window = given != nullptr ? given->as_int(0, kMaxTokens) : 0;
}

void read_mistral(const Node& config, const ModelSettings& /*settings*/, LlamaConfig& cfg) {
  read_window(config, cfg);
  cfg.qkv_bias = cfg.output_bias = false;
}

void read_mixtral(const Node& config, const ModelSettings& settings, LlamaConfig& cfg) {
  read_mistral(config, settings, cfg);
  cfg.experts.experts = required_count(config, {"num_local_experts"}, kMaxLayers);
  cfg.experts.per_token = count_or(config, {"num_experts_per_tok"}, 2, cfg.experts.experts);
  cfg.experts.ffn = cfg.ffn;
  cfg.experts.mixtral_names = true;
}

void read_phi3(const Node& config, const ModelSettings& settings, LlamaConfig& cfg) {
  read_mistral(config, settings, cfg);
  cfg.fused_qkv = true;
  cfg.mlp = MlpForm::kFusedGated;
  cfg.rotary_style = RotaryStyle::kJoined;
  cfg.residual_dropout = probability_or(config, {"resid_pdrop"}, 0);
}

void read_gemma(const Node& config, const ModelSettings& settings, LlamaConfig& cfg) {
  cfg.norm = NormKind::kRmsOne;
  cfg.tied_by_default = true;
  cfg.scaled_embedding_buffer = settings.transformers.embedding_scale_is_a_buffer();
  cfg.embedding_multiplier = std::sqrt(static_cast<double>(cfg.hidden));
  cfg.activation = activation_or(config, {"hidden_activation", "hidden_act"}, "gelu_pytorch_tanh");
}

void read_gemma2(const Node& config, const ModelSettings& settings, LlamaConfig& cfg) {
  read_gemma(config, settings, cfg);
  cfg.placement = NormPlacement::kBoth;
  cfg.mixes_windows = true;
  cfg.window = count_or(config, {"sliding_window"}, 4096, kMaxTokens);
  cfg.attention_scale = 1 / std::sqrt(number_or(config, {"query_pre_attn_scalar"}, 256));
  cfg.attention_softcap = softcap(config, "attn_logit_softcapping", 50);
  cfg.logits_softcap = softcap(config, "final_logit_softcapping", 30);
}

void read_gemma3(const Node& config, const ModelSettings& settings, LlamaConfig& cfg) {
  read_gemma2(config, settings, cfg);
  cfg.qk_norm = QkNorm::kPerHead;
  cfg.two_rotaries = true;
  cfg.attention_softcap = 0;  // read, but not handed to the attention
  cfg.logits_softcap = softcap(config, "final_logit_softcapping", 0);
}

void read_granite(const Node& config, const ModelSettings& /*settings*/, LlamaConfig& cfg) {
  cfg.attention_scale = number_or(config, {"attention_multiplier"}, 1);
  cfg.embedding_multiplier = number_or(config, {"embedding_multiplier"}, 1);
  cfg.residual_multiplier = number_or(config, {"residual_multiplier"}, 1);
  cfg.scaled_logits = true;
}

void read_some_windows(const Node& config, LlamaConfig& cfg) {
  if (!flag_or(config, {"use_sliding_window"}, false)) return;
  cfg.mixes_windows = true;
  cfg.window = count_or(config, {"sliding_window"}, 4096, kMaxTokens);
}

void read_qwen2(const Node& config, const ModelSettings& /*settings*/, LlamaConfig& cfg) {
  cfg.qkv_bias = true;
  cfg.output_bias = false;
  read_some_windows(config, cfg);
}

void read_qwen3(const Node& config, const ModelSettings& /*settings*/, LlamaConfig& cfg) {
  cfg.qk_norm = QkNorm::kPerHead;
  read_some_windows(config, cfg);
}

void read_qwen_experts(const Node& config, std::int64_t experts, std::int64_t per_token,
                       std::int64_t ffn, LlamaConfig& cfg) {
  cfg.experts.experts = count_or(config, {"num_experts", "num_local_experts"}, experts, kMaxLayers);
  cfg.experts.per_token = count_or(config, {"num_experts_per_tok"}, per_token, cfg.experts.experts);
  cfg.experts.ffn = count_or(config, {"moe_intermediate_size"}, ffn);
  cfg.experts.router.normalized = flag_or(config, {"norm_topk_prob"}, false);
  cfg.experts.router.narrow = true;
}

void read_qwen3_moe(const Node& config, const ModelSettings& settings, LlamaConfig& cfg) {
  read_qwen3(config, settings, cfg);
  cfg.mixes_windows = false;  // all layers have one, or none
  read_qwen_experts(config, 128, 8, 768, cfg);
}

void read_qwen2_moe(const Node& config, const ModelSettings& settings, LlamaConfig& cfg) {
  read_qwen2(config, settings, cfg);
  cfg.qkv_bias = flag_or(config, {"qkv_bias"}, true);
  read_qwen_experts(config, 60, 4, 1408, cfg);
  cfg.experts.shared_ffn = count_or(config, {"shared_expert_intermediate_size"}, 5632);
  cfg.experts.shared = SharedExpert::kGated;
}

void read_olmo(const Node& /*config*/, const ModelSettings& /*settings*/, LlamaConfig& cfg) {
  cfg.rotary_style = RotaryStyle::kWideTables;
  cfg.norm = NormKind::kLayerPlain;
}

void read_olmo2(const Node& /*config*/, const ModelSettings& /*settings*/, LlamaConfig& cfg) {
  cfg.rotary_style = RotaryStyle::kWideTables;
  cfg.norm = NormKind::kRmsWide;
  cfg.qk_norm = QkNorm::kWhole;
  cfg.placement = NormPlacement::kAfter;
}

void read_olmo3(const Node& config, const ModelSettings& settings, LlamaConfig& cfg) {
  read_olmo2(config, settings, cfg);
  cfg.mixes_windows = cfg.two_rotaries = true;
  cfg.window = count_or(config, {"sliding_window"}, 4096, kMaxTokens);
}

void read_starcoder2(const Node& config, const ModelSettings& /*settings*/, LlamaConfig& cfg) {
  cfg.norm = NormKind::kLayer;
  cfg.mlp = MlpForm::kPlain;
  cfg.names.up = "c_fc";
  cfg.names.down = "c_proj";
  cfg.tied_by_default = true;
  cfg.qkv_bias = cfg.output_bias = cfg.mlp_bias = flag_or(config, {"use_bias"}, true);
  cfg.activation = activation_or(config, {"hidden_act"}, "gelu_pytorch_tanh");
  cfg.attention_dropout = probability_or(config, {"attention_dropout"}, 0);
  cfg.residual_dropout = probability_or(config, {"residual_dropout"}, 0);
  cfg.embedding_dropout = probability_or(config, {"embedding_dropout"}, 0);
  read_window(config, cfg);
}

void read_stablelm(const Node& config, const ModelSettings& /*settings*/, LlamaConfig& cfg) {
  cfg.norm = NormKind::kLayer;
  cfg.rotary_style = RotaryStyle::kNamedParts;
  cfg.keeps_attention_locals = true;
  cfg.qkv_bias = flag_or(config, {"use_qkv_bias"}, false);
  cfg.output_bias = cfg.mlp_bias = false;
  if (flag_or(config, {"qk_layernorm"}, false)) cfg.qk_norm = QkNorm::kEachHead;
  cfg.parallel = flag_or(config, {"use_parallel_residual"}, false);
  cfg.mlp_dropout = probability_or(config, {"hidden_dropout"}, 0);
}

void read_cohere(const Node& config, const ModelSettings& /*settings*/, LlamaConfig& cfg) {
  cfg.norm = NormKind::kLayerWide;
  cfg.rotary_style = RotaryStyle::kWideHeads;
  cfg.parallel = cfg.tied_by_default = cfg.scaled_logits = true;
  if (flag_or(config, {"use_qk_norm"}, false)) cfg.qk_norm = QkNorm::kPerHead;
  cfg.mlp_bias = false;
}

void read_cohere2(const Node& config, const ModelSettings& settings, LlamaConfig& cfg) {
  read_cohere(config, settings, cfg);
  cfg.qk_norm = QkNorm::kNone;
  cfg.mixes_windows = true;
  cfg.window = count_or(config, {"sliding_window"}, 4096, kMaxTokens);
}

void read_glm(const Node& config, const ModelSettings& /*settings*/, LlamaConfig& cfg) {
  cfg.rotary_style = RotaryStyle::kPairs;
  cfg.mlp = MlpForm::kFusedGated;
  cfg.qkv_bias = flag_or(config, {"attention_bias"}, true);
  cfg.output_bias = cfg.mlp_bias = false;
}

void read_glm4(const Node& config, const ModelSettings& settings, LlamaConfig& cfg) {
  read_glm(config, settings, cfg);
  cfg.placement = NormPlacement::kBoth;
}

void read_smollm3(const Node& config, const ModelSettings& /*settings*/, LlamaConfig& cfg) {
  cfg.tied_by_default = true;
  read_some_windows(config, cfg);
}

void read_seed_oss(const Node& config, const ModelSettings& /*settings*/, LlamaConfig& cfg) {
  cfg.qkv_bias = flag_or(config, {"attention_bias"}, true);
  cfg.output_bias = flag_or(config, {"attention_out_bias"}, false);
  cfg.attention_dropout = probability_or(config, {"attention_dropout"}, 0.1);
  cfg.residual_dropout = probability_or(config, {"residual_dropout"}, 0.1);
}

void read_latent(const Node& config, LlamaConfig& cfg) {
  LatentConfig& latent = cfg.latent;
  latent.kv_rank = count_or(config, {"kv_lora_rank"}, 512);
  const Node* ranks = config.find("q_lora_rank");  // null: queries are not folded
  if (ranks == nullptr) latent.q_rank = 1536;
  if (ranks != nullptr && !ranks->is_null()) latent.q_rank = ranks->as_int(1, kMaxWidth);
  latent.plain = count_or(config, {"qk_nope_head_dim"}, 128);
  latent.rotated = count_or(config, {"qk_rope_head_dim"}, 64);
  if (latent.rotated % 2 != 0) config.at("qk_rope_head_dim").refuse("it must be even");
  latent.values = count_or(config, {"v_head_dim"}, 128);
  cfg.head_size = latent.plain + latent.rotated;
  cfg.rotary = latent.rotated;
  cfg.qkv_bias = cfg.output_bias = flag_or(config, {"attention_bias"}, false);
  cfg.mlp_bias = false;
}

void read_deepseek_experts(const Node& config, std::int64_t experts, std::int64_t per_token,
                           std::int64_t ffn, std::int64_t shared, LlamaConfig& cfg) {
  ExpertsConfig& made = cfg.experts;
  made.experts = count_or(config, {"n_routed_experts"}, experts, kMaxLayers);
  made.per_token = count_or(config, {"num_experts_per_tok"}, per_token, made.experts);
  made.ffn = count_or(config, {"moe_intermediate_size"}, ffn);
  made.shared = SharedExpert::kPlain;
  made.shared_ffn = made.ffn * count_or(config, {"n_shared_experts"}, shared, kMaxLayers);
  made.router.groups = count_or(config, {"n_group"}, 1, made.experts);
  require_divides(config, {"n_group"}, made.router.groups, made.experts, "n_routed_experts");
}

void read_deepseek2(const Node& config, const ModelSettings& /*settings*/, LlamaConfig& cfg) {
  read_latent(config, cfg);
  cfg.latent.complex = true;
  read_deepseek_experts(config, 64, 6, 1407, 2, cfg);
  cfg.experts.router.kind = RouterKind::kWideSoftmax;
  const Node* method = find_any(config, {"topk_method"});
  if (method == nullptr || method->as_string() == "greedy") cfg.experts.router.groups = 1;
}

void read_deepseek3(const Node& config, const ModelSettings& /*settings*/, LlamaConfig& cfg) {
  read_latent(config, cfg);
  cfg.latent.pairs = flag_or(config, {"rope_interleave"}, true);
  if (find_any(config, {"first_k_dense_replace"}) == nullptr) cfg.experts.first_layer = 3;
  read_deepseek_experts(config, 256, 8, 2048, 1, cfg);
  cfg.experts.router.kind = RouterKind::kSigmoid;
  cfg.experts.router.normalized = flag_or(config, {"norm_topk_prob"}, true);
}

void read_gpt_oss(const Node& config, const ModelSettings& /*settings*/, LlamaConfig& cfg) {
  cfg.norm = NormKind::kRmsWide;
  cfg.qkv_bias = cfg.output_bias = flag_or(config, {"attention_bias"}, true);
  cfg.rotary_style = RotaryStyle::kHalves;
  cfg.sinks = true;
  cfg.mixes_windows = true;
  cfg.window = count_or(config, {"sliding_window"}, 128, kMaxTokens);
  cfg.experts.experts = count_or(config, {"num_local_experts", "num_experts"}, 128, kMaxLayers);
  cfg.experts.per_token =
      count_or(config, {"num_experts_per_tok", "experts_per_token"}, 4, cfg.experts.experts);
  cfg.experts.ffn = cfg.ffn;
  cfg.experts.form = ExpertForm::kClampedWithBias;
  cfg.experts.router.kind = RouterKind::kTopThenSoftmax;
}

// InternLM 2 is the code of its own repository: Llama's layers, one matrix for query, key and
// value.
void read_internlm2(const Node& config, const ModelSettings& /*settings*/, LlamaConfig& cfg) {
  cfg.fused_qkv = true;
  cfg.qkv_bias = cfg.output_bias = flag_or(config, {"bias"}, false);
  cfg.names = {.attention = "attention",
               .qkv = "wqkv",
               .output = "wo",
               .mlp = "feed_forward",
               .gate = "w1",
               .up = "w3",
               .down = "w2"};
}

void read_nemotron(const Node& config, const ModelSettings& /*settings*/, LlamaConfig& cfg) {
  cfg.norm = NormKind::kLayerOne;
  cfg.mlp = MlpForm::kPlain;
  cfg.activation = activation_or(config, {"hidden_act"}, "relu2");
  cfg.rotary_style = RotaryStyle::kJoined;
}

void read_arcee(const Node& config, const ModelSettings& /*settings*/, LlamaConfig& cfg) {
  cfg.mlp = MlpForm::kPlain;
  cfg.activation = activation_or(config, {"hidden_act"}, "relu2");
}

void read_helium(const Node& config, const ModelSettings& /*settings*/, LlamaConfig& cfg) {
  cfg.norm = NormKind::kRmsWide;
  cfg.rotary_style = RotaryStyle::kWholePairs;
  cfg.output_bias = false;
  if (find_any(config, {"head_dim"}) == nullptr) cfg.head_size = cfg.rotary = 128;
}

void read_ernie(const Node& config, const ModelSettings& /*settings*/, LlamaConfig& cfg) {
  cfg.rotary_style = RotaryStyle::kWidePairs;
  cfg.tied_by_default = true;
  cfg.qkv_bias = cfg.output_bias = cfg.mlp_bias = flag_or(config, {"use_bias"}, false);
  if (find_any(config, {"head_dim"}) == nullptr) cfg.head_size = cfg.rotary = 128;
  cfg.attention_dropout = 0;
}

void read_hunyuan(const Node& /*config*/, const ModelSettings& /*settings*/, LlamaConfig& cfg) {
  cfg.qk_norm = QkNorm::kPerHead;
  cfg.norms_rotated = true;
  cfg.mlp_bias = false;
}

// 0: the configuration says null.
std::int64_t window_or(const Node& config, std::int64_t fallback) {
  const Node* given = config.find("sliding_window");
  if (given == nullptr) return fallback;
  return given->is_null() ? 0 : given->as_int(0, kMaxTokens);
}

void read_exaone4(const Node& config, const ModelSettings& /*settings*/, LlamaConfig& cfg) {
  cfg.qkv_bias = cfg.output_bias = cfg.mlp_bias = false;
  cfg.qk_norm = QkNorm::kPerHead;
  cfg.placement = NormPlacement::kAfter;
  cfg.window = window_or(config, 4096);
  cfg.mixes_windows = cfg.window > 0;
}

void read_ministral(const Node& config, const ModelSettings& /*settings*/, LlamaConfig& cfg) {
  cfg.window = window_or(config, 4096);
  cfg.mixes_windows = cfg.window > 0;  // the model makes both masks, whichever its layers take
  cfg.qkv_bias = cfg.output_bias = cfg.mlp_bias = false;
}

void read_ministral3(const Node& config, const ModelSettings& settings, LlamaConfig& cfg) {
  read_mistral(config, settings, cfg);
  cfg.scaled_queries = true;
}

void read_cwm(const Node& config, const ModelSettings& /*settings*/, LlamaConfig& cfg) {
  cfg.window = window_or(config, 8192);
  cfg.mixes_windows = cfg.window > 0;
  cfg.qkv_bias = cfg.output_bias = false;
  if (find_any(config, {"head_dim"}) == nullptr) cfg.head_size = cfg.rotary = 128;
}

void read_olmoe(const Node& config, const ModelSettings& /*settings*/, LlamaConfig& cfg) {
  if (const Node* limit = find_any(config, {"clip_qkv"}))
    limit->refuse(
        "clamped queries, keys and values are not modelled; record the step with memfathom "
        "capture");
  cfg.qk_norm = QkNorm::kWhole;
  read_qwen_experts(config, 64, 8, cfg.ffn, cfg);
  cfg.experts.ffn = cfg.ffn;
}

void read_flex_olmo(const Node& config, const ModelSettings& settings, LlamaConfig& cfg) {
  read_olmo2(config, settings, cfg);
  read_qwen_experts(config, 7, 5, cfg.ffn, cfg);
  cfg.experts.ffn = cfg.ffn;
}

void read_granite_moe(const Node& config, const ModelSettings& settings, LlamaConfig& cfg) {
  read_granite(config, settings, cfg);
  cfg.mlp_bias = false;
  cfg.experts.experts = count_or(config, {"num_local_experts"}, 8, kMaxLayers);
  cfg.experts.per_token = count_or(config, {"num_experts_per_tok"}, 2, cfg.experts.experts);
  cfg.experts.ffn = cfg.ffn;
  cfg.experts.router.kind = RouterKind::kTopThenSoftmax;
  cfg.experts.router.wide_logits = true;
}

void read_granite_moe_shared(const Node& config, const ModelSettings& settings, LlamaConfig& cfg) {
  read_granite_moe(config, settings, cfg);
  const Node* width = find_any(config, {"shared_intermediate_size"});
  cfg.experts.shared_ffn = width != nullptr ? width->as_int(0, kMaxWidth) : 0;
  if (cfg.experts.shared_ffn > 0) cfg.experts.shared = SharedExpert::kFused;
}

void read_glm4_moe(const Node& config, const ModelSettings& /*settings*/, LlamaConfig& cfg) {
  cfg.rotary_style = RotaryStyle::kJoined;
  cfg.output_bias = cfg.mlp_bias = false;
  if (flag_or(config, {"use_qk_norm"}, false)) cfg.qk_norm = QkNorm::kPerHead;
  if (find_any(config, {"first_k_dense_replace"}) == nullptr) cfg.experts.first_layer = 1;
  read_deepseek_experts(config, 128, 8, 1408, 1, cfg);
  cfg.experts.router.kind = RouterKind::kSigmoid;
  cfg.experts.router.normalized = flag_or(config, {"norm_topk_prob"}, true);
}

void read_dots1(const Node& config, const ModelSettings& /*settings*/, LlamaConfig& cfg) {
  cfg.qk_norm = QkNorm::kPerHead;
  cfg.window = window_or(config, 4096);
  cfg.mixes_windows = cfg.window > 0;
  cfg.mlp_bias = false;
  required_count(config, {"n_routed_experts"}, kMaxLayers);
  required_count(config, {"n_shared_experts"}, kMaxLayers);
  required_count(config, {"num_experts_per_tok"}, kMaxLayers);
  read_deepseek_experts(config, 1, 1, 1408, 1, cfg);
  cfg.experts.router.kind = RouterKind::kSigmoid;
  cfg.experts.router.normalized = flag_or(config, {"norm_topk_prob"}, false);
}

constexpr RotaryHistory kLlamaRotaryHistory{{4, 38}, {4, 41}, {4, 43}};

constexpr FamilyTraits kTensorParallel{.has_tensor_parallel = true};

constexpr LlamaVariant kLlamaVariants[] = {
    {.type = "arcee", .read = read_arcee, .family = {.since = {4, 53}}},
    {.type = "cohere", .read = read_cohere, .rotary = {.per_model = {4, 45}}},
    {.type = "cohere2",
     .read = read_cohere2,
     .family = {.since = {4, 48}},
     .window_pattern = 4,
     .rotary_in_windows_only = true},
    {.type = "cwm",
     .read = read_cwm,
     .family = {.since = {4, 57}},
     .window_pattern = 4,
     .window_pattern_begins_full = true},
    {.type = "deepseek_v2", .read = read_deepseek2, .family = {.since = {4, 54}}},
    {.type = "deepseek_v3", .read = read_deepseek3, .family = {.since = {4, 51}}},
    {.type = "dots1", .read = read_dots1, .family = {.since = {5, 0}}, .full_layers = 62},
    {.type = "ernie4_5", .read = read_ernie, .family = {.since = {4, 54}}},
    {.type = "exaone4",
     .read = read_exaone4,
     .family = {.since = {4, 54}},
     .window_pattern = 4,
     .rotary_in_windows_only = true},
    {.type = "flex_olmo", .read = read_flex_olmo, .family = {.since = {5, 0}}},
    {.type = "gemma",
     .read = read_gemma,
     .family = kTensorParallel,
     .rotary = {.per_model = {4, 48}}},
    {.type = "gemma2",
     .read = read_gemma2,
     .family = kTensorParallel,
     .rotary = {.per_model = {4, 48}},
     .window_pattern = 2},
    {.type = "gemma3_text", .read = read_gemma3, .family = {.since = {4, 50}}, .window_pattern = 6},
    {.type = "glm", .read = read_glm, .family = {.since = {4, 46}}, .rotary_fraction = 0.5},
    {.type = "glm4", .read = read_glm4, .family = {.since = {4, 51}}, .rotary_fraction = 0.5},
    {.type = "glm4_moe",
     .read = read_glm4_moe,
     .family = {.since = {5, 0}},
     .rotary_fraction = 0.5},
    {.type = "gpt_oss", .read = read_gpt_oss, .family = {.since = {4, 55}}, .window_pattern = 2},
    {.type = "granite", .read = read_granite, .family = kTensorParallel},
    {.type = "granitemoe", .read = read_granite_moe, .family = {.since = {5, 0}}},
    {.type = "granitemoeshared", .read = read_granite_moe_shared, .family = {.since = {5, 0}}},
    {.type = "helium", .read = read_helium, .family = {.since = {4, 49}}},
    {.type = "hunyuan_v1_dense", .read = read_hunyuan, .family = {.since = {4, 56}}},
    {.type = "internlm2", .read = read_internlm2, .rotary = kLlamaRotaryHistory},
    // Kimi K2's files name it; its code is DeepSeek V3's.
    {.type = "kimi_k2", .read = read_deepseek3, .family = {.since = {4, 51}}},
    {.type = "llama", .family = kTensorParallel, .rotary = kLlamaRotaryHistory},
    {.type = "ministral", .read = read_ministral, .family = {.since = {5, 0}}, .full_layers = 0},
    {.type = "ministral3", .read = read_ministral3, .family = {.since = {5, 0}}},
    {.type = "mistral",
     .read = read_mistral,
     .family = kTensorParallel,
     .rotary = {{4, 42}, {4, 42}, {4, 48}}},
    {.type = "mixtral",
     .read = read_mixtral,
     .family = kTensorParallel,
     .rotary = {{4, 48}, {4, 48}, {4, 48}}},
    {.type = "nemotron",
     .read = read_nemotron,
     .family = {.since = {4, 48}},
     .rotary_fraction = 0.5},
    {.type = "olmo",
     .read = read_olmo,
     .family = kTensorParallel,
     .rotary = {{4, 40}, {4, 41}, {4, 48}}},
    {.type = "olmo2",
     .read = read_olmo2,
     .family = {.since = {4, 47}, .has_tensor_parallel = true},
     .rotary = {.per_model = {4, 48}}},
    {.type = "olmo3", .read = read_olmo3, .family = {.since = {4, 57}}, .window_pattern = 4},
    {.type = "olmoe", .read = read_olmoe, .family = {.since = {5, 0}}},
    {.type = "phi3",
     .read = read_phi3,
     .family = kTensorParallel,
     .rotary = {.per_model = {4, 48}}},
    {.type = "qwen2",
     .read = read_qwen2,
     .family = kTensorParallel,
     .rotary = {{4, 45}, {4, 45}, {4, 45}}},
    {.type = "qwen2_moe",
     .read = read_qwen2_moe,
     .rotary = {{4, 45}, {4, 45}, {4, 45}},
     .windows_in_even_layers = true},
    {.type = "qwen3",
     .read = read_qwen3,
     .family = {.since = {4, 51}, .has_tensor_parallel = true}},
    {.type = "qwen3_moe", .read = read_qwen3_moe, .family = {.since = {4, 51}}},
    {.type = "seed_oss", .read = read_seed_oss, .family = {.since = {4, 56}}},
    {.type = "smollm3",
     .read = read_smollm3,
     .family = {.since = {4, 53}},
     .has_no_rope_layers = true},
    {.type = "stablelm",
     .read = read_stablelm,
     .rotary = {{4, 45}, {4, 45}, {4, 45}},
     .rotary_fraction = 0.25},
    {.type = "starcoder2", .read = read_starcoder2, .rotary = {{4, 45}, {4, 45}, {4, 45}}},
};

}  // namespace

const LlamaVariant& llama_variant(const Node& config) {
  const std::string& type = config.at("model_type").as_string();
  for (const LlamaVariant& variant : kLlamaVariants) {
    if (variant.type == type) return variant;
  }
  throw Error(ErrorKind::kInternal,
              "a model of another kind was taken for one of Llama's: " + type);
}

std::span<const LlamaVariant> llama_variants() { return kLlamaVariants; }

bool is_llama_variant(const Node& config) {
  const Node* type = config.find("model_type");
  if (type == nullptr || !type->is_string()) return false;
  return std::any_of(
      std::begin(kLlamaVariants), std::end(kLlamaVariants),
      [&](const LlamaVariant& variant) { return variant.type == type->as_string(); });
}

}  // namespace memfathom

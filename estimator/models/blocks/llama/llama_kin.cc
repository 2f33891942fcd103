#include "estimator/models/blocks/llama/llama_kin.h"

#include <cmath>
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

void read_window(const Node& config, LlamaPlan& plan) {
  const Node* given = find_any(config, {"sliding_window"});
  plan.window = given != nullptr ? given->as_int(0, kMostTokens) : 0;
}

void read_mistral(const Node& config, const ModelSettings& /*settings*/, LlamaPlan& plan) {
  read_window(config, plan);
  plan.qkv_bias = plan.output_bias = false;
}

void read_mixtral(const Node& config, const ModelSettings& settings, LlamaPlan& plan) {
  read_mistral(config, settings, plan);
  plan.experts.experts = required_count(config, {"num_local_experts"}, kMostLayers);
  plan.experts.per_token = count_or(config, {"num_experts_per_tok"}, 2, plan.experts.experts);
  plan.experts.ffn = plan.ffn;
  plan.experts.mixtral_names = true;
}

void read_phi3(const Node& config, const ModelSettings& settings, LlamaPlan& plan) {
  read_mistral(config, settings, plan);
  plan.fused_qkv = true;
  plan.mlp = MlpForm::kFusedGated;
  plan.turning = Turning::kJoined;
  plan.residual_dropout = probability_or(config, {"resid_pdrop"}, 0);
}

void read_gemma(const Node& config, const ModelSettings& settings, LlamaPlan& plan) {
  plan.norm = NormKind::kRmsOne;
  plan.tied_by_default = true;
  plan.scaled_embedding_buffer = settings.transformers_version >= 500;
  plan.embedding_multiplier = std::sqrt(static_cast<double>(plan.hidden));
  plan.activation = activation_or(config, {"hidden_activation", "hidden_act"}, "gelu_pytorch_tanh");
}

void read_gemma2(const Node& config, const ModelSettings& settings, LlamaPlan& plan) {
  read_gemma(config, settings, plan);
  plan.placement = NormPlacement::kBoth;
  plan.mixes_windows = true;
  plan.window = count_or(config, {"sliding_window"}, 4096, kMostTokens);
  plan.attention_scale = 1 / std::sqrt(number_or(config, {"query_pre_attn_scalar"}, 256));
  plan.attention_softcap = softcap(config, "attn_logit_softcapping", 50);
  plan.logits_softcap = softcap(config, "final_logit_softcapping", 30);
}

void read_gemma3(const Node& config, const ModelSettings& settings, LlamaPlan& plan) {
  read_gemma2(config, settings, plan);
  plan.qk_norm = QkNorm::kPerHead;
  plan.two_rotaries = true;
  plan.attention_softcap = 0;  // read, but not handed to the attention
  plan.logits_softcap = softcap(config, "final_logit_softcapping", 0);
}

void read_granite(const Node& config, const ModelSettings& /*settings*/, LlamaPlan& plan) {
  plan.attention_scale = number_or(config, {"attention_multiplier"}, 1);
  plan.embedding_multiplier = number_or(config, {"embedding_multiplier"}, 1);
  plan.residual_multiplier = number_or(config, {"residual_multiplier"}, 1);
  plan.scaled_logits = true;
}

void read_some_windows(const Node& config, LlamaPlan& plan) {
  if (!flag_or(config, {"use_sliding_window"}, false)) return;
  plan.mixes_windows = true;
  plan.window = count_or(config, {"sliding_window"}, 4096, kMostTokens);
}

void read_qwen2(const Node& config, const ModelSettings& /*settings*/, LlamaPlan& plan) {
  plan.qkv_bias = true;
  plan.output_bias = false;
  read_some_windows(config, plan);
}

void read_qwen3(const Node& config, const ModelSettings& /*settings*/, LlamaPlan& plan) {
  plan.qk_norm = QkNorm::kPerHead;
  read_some_windows(config, plan);
}

void read_qwen_experts(const Node& config, std::int64_t experts, std::int64_t per_token,
                       std::int64_t ffn, LlamaPlan& plan) {
  plan.experts.experts =
      count_or(config, {"num_experts", "num_local_experts"}, experts, kMostLayers);
  plan.experts.per_token =
      count_or(config, {"num_experts_per_tok"}, per_token, plan.experts.experts);
  plan.experts.ffn = count_or(config, {"moe_intermediate_size"}, ffn);
  plan.experts.router.normalized = flag_or(config, {"norm_topk_prob"}, false);
  plan.experts.router.narrow = true;
}

void read_qwen3_moe(const Node& config, const ModelSettings& settings, LlamaPlan& plan) {
  read_qwen3(config, settings, plan);
  read_qwen_experts(config, 128, 8, 768, plan);
}

void read_qwen2_moe(const Node& config, const ModelSettings& settings, LlamaPlan& plan) {
  read_qwen2(config, settings, plan);
  plan.qkv_bias = flag_or(config, {"qkv_bias"}, true);
  read_qwen_experts(config, 60, 4, 1408, plan);
  plan.experts.shared_ffn = count_or(config, {"shared_expert_intermediate_size"}, 5632);
  plan.experts.shared = SharedExpert::kGated;
}

void read_olmo(const Node& /*config*/, const ModelSettings& /*settings*/, LlamaPlan& plan) {
  plan.turning = Turning::kWideTables;
  plan.norm = NormKind::kLayerPlain;
}

void read_olmo2(const Node& /*config*/, const ModelSettings& /*settings*/, LlamaPlan& plan) {
  plan.turning = Turning::kWideTables;
  plan.norm = NormKind::kRmsWide;
  plan.qk_norm = QkNorm::kWhole;
  plan.placement = NormPlacement::kAfter;
}

void read_olmo3(const Node& config, const ModelSettings& settings, LlamaPlan& plan) {
  read_olmo2(config, settings, plan);
  plan.mixes_windows = plan.two_rotaries = true;
  plan.window = count_or(config, {"sliding_window"}, 4096, kMostTokens);
}

void read_starcoder2(const Node& config, const ModelSettings& /*settings*/, LlamaPlan& plan) {
  plan.norm = NormKind::kLayer;
  plan.mlp = MlpForm::kPlain;
  plan.names.up = "c_fc";
  plan.names.down = "c_proj";
  plan.tied_by_default = true;
  plan.qkv_bias = plan.output_bias = plan.mlp_bias = flag_or(config, {"use_bias"}, true);
  plan.activation = activation_or(config, {"hidden_act"}, "gelu_pytorch_tanh");
  plan.attention_dropout = probability_or(config, {"attention_dropout"}, 0);
  plan.residual_dropout = probability_or(config, {"residual_dropout"}, 0);
  plan.embedding_dropout = probability_or(config, {"embedding_dropout"}, 0);
  read_window(config, plan);
}

void read_stablelm(const Node& config, const ModelSettings& /*settings*/, LlamaPlan& plan) {
  plan.norm = NormKind::kLayer;
  plan.turning = Turning::kNamedParts;
  plan.keeps_first_half = true;
  plan.qkv_bias = flag_or(config, {"use_qkv_bias"}, false);
  plan.output_bias = plan.mlp_bias = false;
  if (flag_or(config, {"qk_layernorm"}, false)) plan.qk_norm = QkNorm::kEachHead;
  plan.parallel = flag_or(config, {"use_parallel_residual"}, false);
  plan.mlp_dropout = probability_or(config, {"hidden_dropout"}, 0);
}

void read_cohere(const Node& config, const ModelSettings& /*settings*/, LlamaPlan& plan) {
  plan.norm = NormKind::kLayerWide;
  plan.turning = Turning::kWideHeads;
  plan.parallel = plan.tied_by_default = plan.scaled_logits = true;
  if (flag_or(config, {"use_qk_norm"}, false)) plan.qk_norm = QkNorm::kPerHead;
  plan.mlp_bias = false;
}

void read_cohere2(const Node& config, const ModelSettings& settings, LlamaPlan& plan) {
  read_cohere(config, settings, plan);
  plan.qk_norm = QkNorm::kNone;
  plan.mixes_windows = true;
  plan.window = count_or(config, {"sliding_window"}, 4096, kMostTokens);
}

void read_glm(const Node& config, const ModelSettings& /*settings*/, LlamaPlan& plan) {
  plan.turning = Turning::kPairs;
  plan.mlp = MlpForm::kFusedGated;
  plan.qkv_bias = flag_or(config, {"attention_bias"}, true);
  plan.output_bias = plan.mlp_bias = false;
}

void read_glm4(const Node& config, const ModelSettings& settings, LlamaPlan& plan) {
  read_glm(config, settings, plan);
  plan.placement = NormPlacement::kBoth;
}

void read_smollm3(const Node& config, const ModelSettings& /*settings*/, LlamaPlan& plan) {
  plan.tied_by_default = true;
  read_some_windows(config, plan);
}

void read_seed_oss(const Node& config, const ModelSettings& /*settings*/, LlamaPlan& plan) {
  plan.qkv_bias = flag_or(config, {"attention_bias"}, true);
  plan.output_bias = flag_or(config, {"attention_out_bias"}, false);
  plan.residual_dropout = probability_or(config, {"residual_dropout"}, 0);
}

void read_latent(const Node& config, LlamaPlan& plan) {
  LatentPlan& latent = plan.latent;
  latent.kv_rank = count_or(config, {"kv_lora_rank"}, 512);
  const Node* ranks = config.find("q_lora_rank");  // null: queries are not folded
  if (ranks == nullptr) latent.q_rank = 1536;
  if (ranks != nullptr && !ranks->is_null()) latent.q_rank = ranks->as_int(1, kMostWidth);
  latent.plain = count_or(config, {"qk_nope_head_dim"}, 128);
  latent.turned = count_or(config, {"qk_rope_head_dim"}, 64);
  if (latent.turned % 2 != 0) config.at("qk_rope_head_dim").refuse("it must be even");
  latent.values = count_or(config, {"v_head_dim"}, 128);
  plan.head_size = latent.plain + latent.turned;
  plan.rotary = latent.turned;
  plan.qkv_bias = plan.output_bias = flag_or(config, {"attention_bias"}, false);
  plan.mlp_bias = false;
}

void read_deepseek_experts(const Node& config, std::int64_t experts, std::int64_t per_token,
                           std::int64_t ffn, std::int64_t shared, LlamaPlan& plan) {
  ExpertsPlan& made = plan.experts;
  made.experts = count_or(config, {"n_routed_experts"}, experts, kMostLayers);
  made.per_token = count_or(config, {"num_experts_per_tok"}, per_token, made.experts);
  made.ffn = count_or(config, {"moe_intermediate_size"}, ffn);
  made.shared = SharedExpert::kPlain;
  made.shared_ffn = made.ffn * count_or(config, {"n_shared_experts"}, shared, kMostLayers);
  made.router.groups = count_or(config, {"n_group"}, 1, made.experts);
  require_divides(config, {"n_group"}, made.router.groups, made.experts, "n_routed_experts");
}

void read_deepseek2(const Node& config, const ModelSettings& /*settings*/, LlamaPlan& plan) {
  read_latent(config, plan);
  plan.latent.complex = true;
  read_deepseek_experts(config, 64, 6, 1407, 2, plan);
  plan.experts.router.kind = RouterKind::kWideSoftmax;
  const Node* method = find_any(config, {"topk_method"});
  if (method == nullptr || method->as_string() == "greedy") plan.experts.router.groups = 1;
}

void read_deepseek3(const Node& config, const ModelSettings& /*settings*/, LlamaPlan& plan) {
  read_latent(config, plan);
  plan.latent.pairs = flag_or(config, {"rope_interleave"}, true);
  if (find_any(config, {"first_k_dense_replace"}) == nullptr) plan.experts.first_layer = 3;
  read_deepseek_experts(config, 256, 8, 2048, 1, plan);
  plan.experts.router.kind = RouterKind::kSigmoid;
  plan.experts.router.normalized = flag_or(config, {"norm_topk_prob"}, true);
}

void read_gpt_oss(const Node& config, const ModelSettings& /*settings*/, LlamaPlan& plan) {
  plan.norm = NormKind::kRmsWide;
  plan.qkv_bias = plan.output_bias = flag_or(config, {"attention_bias"}, true);
  plan.turning = Turning::kHalves;
  plan.sinks = true;
  plan.mixes_windows = true;
  plan.window = count_or(config, {"sliding_window"}, 128, kMostTokens);
  plan.experts.experts = count_or(config, {"num_local_experts", "num_experts"}, 128, kMostLayers);
  plan.experts.per_token =
      count_or(config, {"num_experts_per_tok", "experts_per_token"}, 4, plan.experts.experts);
  plan.experts.ffn = plan.ffn;
  plan.experts.form = ExpertForm::kClampedWithBias;
  plan.experts.router.kind = RouterKind::kTopThenSoftmax;
}

// InternLM 2 is the code of its own repository: Llama's layers, one matrix for query, key and
// value.
void read_internlm2(const Node& config, const ModelSettings& /*settings*/, LlamaPlan& plan) {
  plan.fused_qkv = true;
  plan.qkv_bias = plan.output_bias = flag_or(config, {"bias"}, false);
  plan.names = {.attention = "attention",
                .qkv = "wqkv",
                .output = "wo",
                .mlp = "feed_forward",
                .gate = "w1",
                .up = "w3",
                .down = "w2"};
}

constexpr RotaryHistory kOfLlama{438, 441, 443};

constexpr LlamaKin kKin[] = {
    {.type = "cohere", .read = read_cohere, .rotary = {.per_model = 445}},
    {.type = "cohere2",
     .read = read_cohere2,
     .since = 448,
     .window_pattern = 4,
     .turned_in_windows = true},
    {.type = "deepseek_v2", .read = read_deepseek2, .since = 454},
    {.type = "deepseek_v3", .read = read_deepseek3, .since = 451},
    {.type = "gemma", .read = read_gemma, .rotary = {.per_model = 448}},
    {.type = "gemma2", .read = read_gemma2, .rotary = {.per_model = 448}, .window_pattern = 2},
    {.type = "gemma3_text", .read = read_gemma3, .since = 450, .window_pattern = 6},
    {.type = "glm", .read = read_glm, .since = 446, .turned_part = 0.5},
    {.type = "glm4", .read = read_glm4, .since = 451, .turned_part = 0.5},
    {.type = "gpt_oss", .read = read_gpt_oss, .since = 455, .window_pattern = 2},
    {.type = "granite", .read = read_granite},
    {.type = "internlm2", .read = read_internlm2, .rotary = kOfLlama},
    {.type = "llama", .rotary = kOfLlama},
    {.type = "mistral", .read = read_mistral, .rotary = {442, 442, 448}},
    {.type = "mixtral", .read = read_mixtral, .rotary = {448, 448, 448}},
    {.type = "olmo", .read = read_olmo, .rotary = {440, 441, 448}},
    {.type = "olmo2", .read = read_olmo2, .since = 447, .rotary = {.per_model = 448}},
    {.type = "olmo3", .read = read_olmo3, .since = 457, .window_pattern = 4},
    {.type = "phi3", .read = read_phi3, .rotary = {.per_model = 448}},
    {.type = "qwen2", .read = read_qwen2, .rotary = {445, 445, 445}},
    {.type = "qwen2_moe", .read = read_qwen2_moe, .rotary = {445, 445, 445}},
    {.type = "qwen3", .read = read_qwen3, .since = 451},
    {.type = "qwen3_moe", .read = read_qwen3_moe, .since = 451},
    {.type = "seed_oss", .read = read_seed_oss, .since = 456},
    {.type = "smollm3", .read = read_smollm3, .since = 453, .some_turned = true},
    {.type = "stablelm", .read = read_stablelm, .rotary = {445, 445, 445}, .turned_part = 0.25},
    {.type = "starcoder2", .read = read_starcoder2, .rotary = {445, 445, 445}},
};

}  // namespace

const LlamaKin& llama_kin(const Node& config) {
  const std::string& type = config.at("model_type").as_string();
  for (const LlamaKin& kin : kKin) {
    if (kin.type == type) return kin;
  }
  throw Error(ErrorKind::kInternal,
              "a model of another kind was taken for one of Llama's: " + type);
}

std::vector<std::string_view> llama_kin_types() {
  std::vector<std::string_view> types;
  for (const LlamaKin& kin : kKin) types.push_back(kin.type);
  return types;
}

}  // namespace memfathom

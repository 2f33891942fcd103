#include "estimator/models/families/language/litgpt_plan.h"

#include <array>
#include <string_view>

#include "estimator/models/blocks/config_reader.h"
#include "estimator/models/blocks/rotary.h"

namespace memfathom {
namespace {

enum Family : std::uint8_t { kLlama, kMistral, kQwen2, kGemma, kPhi, kGptNeox, kFalcon };

constexpr std::array<std::string_view, 7> kTypes{"llama", "mistral",  "qwen2", "gemma",
                                                 "phi",   "gpt_neox", "falcon"};

Family family_of(const Node& config) {
  const Node& type = config.at("model_type");
  for (std::size_t i = 0; i < kTypes.size(); ++i) {
    if (type.as_string() == kTypes[i]) return static_cast<Family>(i);
  }
  type.refuse(
      "LitGPT is imitated for llama, mistral, qwen2, gemma, phi, gpt_neox and falcon; leave "
      "target.stack.library out to have the transformers model");
}

// One layer norm and one matrix of every kind, each with a bias, attention beside the MLP.
void read_plain(const Node& config, double turned_part, LitgptPlan& plan) {
  plan.norm = NormKind::kLayer;
  plan.gated = false;
  plan.bias = true;
  plan.parallel = true;
  plan.activation = Activation::kGelu;
  plan.rotary = rotary_size(config, plan.head_size, turned_part);
}

void read_falcon(const Node& config, LitgptPlan& plan) {
  read_plain(config, 1, plan);
  const bool newer = flag_or(config, {"new_decoder_architecture"}, false);
  const bool one = flag_or(config, {"multi_query"}, true) && !newer;
  plan.groups = one ? 1 : count_or(config, {"num_kv_heads", "n_head_kv"}, plan.heads);
  plan.bias = flag_or(config, {"bias"}, false);
  plan.shared_norm = !newer;
}

}  // namespace

LitgptPlan read_litgpt_plan(const Node& config) {
  const Family family = family_of(config);
  LitgptPlan plan;
  plan.hidden = required_count(config, {"hidden_size"});
  plan.layers = required_count(config, {"num_hidden_layers"}, kMostLayers);
  plan.heads = required_count(config, {"num_attention_heads"});
  plan.head_size = count_or(config, {"head_dim"}, plan.hidden / plan.heads);
  plan.groups = count_or(config, {"num_key_value_heads"}, plan.heads);
  plan.vocabulary = required_count(config, {"vocab_size"}, kMostTokens);
  plan.ffn = count_or(config, {"intermediate_size", "ffn_hidden_size"}, 4 * plan.hidden);
  plan.rotary = plan.head_size;
  switch (family) {
    case kLlama:
    case kMistral: break;
    case kQwen2: plan.qkv_bias = true; break;
    case kGemma:
      plan.norm = NormKind::kRmsOne;
      plan.activation = Activation::kGeluTanh;
      plan.scaled_embeddings = true;
      break;
    case kPhi:
      read_plain(config, 0.5, plan);
      plan.activation = Activation::kGeluTanh;
      plan.shared_norm = plan.head_bias = true;
      break;
    case kGptNeox:
      read_plain(config, 0.25, plan);
      plan.parallel = flag_or(config, {"use_parallel_residual"}, true);
      break;
    case kFalcon: read_falcon(config, plan); break;
  }
  require_divides(config, {"num_key_value_heads", "num_attention_heads"}, plan.groups, plan.heads,
                  "num_attention_heads");
  return plan;
}

}  // namespace memfathom

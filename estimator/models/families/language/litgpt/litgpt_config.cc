#include "estimator/models/families/language/litgpt/litgpt_config.h"

#include <array>
#include <string_view>

#include "estimator/models/blocks/config_reader.h"
#include "estimator/models/blocks/rotary.h"

namespace memfathom {
namespace {

enum LitgptFamily : std::uint8_t { kLlama, kMistral, kQwen2, kGemma, kPhi, kGptNeox, kFalcon };

}  // namespace

// By their model_type.
template <>
inline constexpr auto kEnumNames<LitgptFamily> =
    std::to_array<EnumName<LitgptFamily>>({{kLlama, "llama"},
                                           {kMistral, "mistral"},
                                           {kQwen2, "qwen2"},
                                           {kGemma, "gemma"},
                                           {kPhi, "phi"},
                                           {kGptNeox, "gpt_neox"},
                                           {kFalcon, "falcon"}});

namespace {

LitgptFamily family_of(const Node& config) {
  const Node& type = config.at("model_type");
  const std::optional<LitgptFamily> family = enum_from_name<LitgptFamily>(type.as_string());
  if (family) return *family;
  type.refuse(
      "LitGPT is imitated for llama, mistral, qwen2, gemma, phi, gpt_neox and falcon; leave "
      "target.stack.library out to have the transformers model");
}

// One layer norm and one matrix of every kind, each with a bias, attention beside the MLP.
void read_plain(const Node& config, double rotary_fraction, LitgptConfig& cfg) {
  cfg.norm = NormKind::kLayer;
  cfg.gated = false;
  cfg.bias = true;
  cfg.parallel = true;
  cfg.activation = Activation::kGelu;
  cfg.rotary = rotary_size(config, cfg.head_size, rotary_fraction);
}

void read_falcon(const Node& config, LitgptConfig& cfg) {
  read_plain(config, 1, cfg);
  const bool newer = flag_or(config, {"new_decoder_architecture"}, false);
  const bool one = flag_or(config, {"multi_query"}, true) && !newer;
  cfg.groups = one ? 1 : count_or(config, {"num_kv_heads", "n_head_kv"}, cfg.heads);
  cfg.bias = flag_or(config, {"bias"}, false);
  cfg.shared_norm = !newer;
}

}  // namespace

LitgptConfig read_litgpt_config(const Node& config) {
  const LitgptFamily family = family_of(config);
  LitgptConfig cfg;
  cfg.hidden = required_count(config, {"hidden_size"});
  cfg.layers = required_count(config, {"num_hidden_layers"}, kMaxLayers);
  cfg.heads = required_count(config, {"num_attention_heads"});
  cfg.head_size = count_or(config, {"head_dim"}, cfg.hidden / cfg.heads);
  cfg.groups = count_or(config, {"num_key_value_heads"}, cfg.heads);
  cfg.vocabulary = required_count(config, {"vocab_size"}, kMaxTokens);
  cfg.ffn = count_or(config, {"intermediate_size", "ffn_hidden_size"}, 4 * cfg.hidden);
  cfg.rotary = cfg.head_size;
  switch (family) {
    case kLlama:
    case kMistral: break;
    case kQwen2: cfg.qkv_bias = true; break;
    case kGemma:
      cfg.norm = NormKind::kRmsOne;
      cfg.activation = Activation::kGeluTanh;
      cfg.scaled_embeddings = true;
      break;
    case kPhi:
      read_plain(config, 0.5, cfg);
      cfg.activation = Activation::kGeluTanh;
      cfg.shared_norm = cfg.head_bias = true;
      break;
    case kGptNeox:
      read_plain(config, 0.25, cfg);
      cfg.parallel = flag_or(config, {"use_parallel_residual"}, true);
      break;
    case kFalcon: read_falcon(config, cfg); break;
  }
  require_divides(config, {"num_key_value_heads", "num_attention_heads"}, cfg.groups, cfg.heads,
                  "num_attention_heads");
  return cfg;
}

}  // namespace memfathom

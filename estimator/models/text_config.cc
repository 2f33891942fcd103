#include "estimator/models/text_config.h"

#include <array>
#include <span>
#include <string>
#include <string_view>

#include "estimator/models/registry.h"

namespace memfathom {
namespace {

std::string type_of(const Node& config) {
  const Node* type = config.find("model_type");
  return type != nullptr && type->is_string() ? type->as_string() : std::string();
}

// Some have a name of their own for the same layers.
std::string family_of(const Node& config, const Node& part) {
  std::string type = type_of(part);
  for (const char* alias : {"qwen2_vl", "qwen2_vl_text", "qwen2_5_vl", "qwen2_5_vl_text"}) {
    if (type == alias) return "qwen2";
  }
  if (type == "qwen3_vl_text") return "qwen3";
  if (type == "qwen3_vl_moe_text") return "qwen3_moe";
  if (!type.empty()) return type;
  const std::string whole = type_of(config);
  if (whole.starts_with("llava")) return "llama";
  if (whole == "gemma3") return "gemma3_text";
  return whole == "paligemma" ? "gemma" : type;
}

struct Default {
  const char* key;
  std::int64_t value;
};

constexpr auto kLlama = std::to_array<Default>({{"hidden_size", 4096},
                                                {"intermediate_size", 11008},
                                                {"num_hidden_layers", 32},
                                                {"num_attention_heads", 32},
                                                {"vocab_size", 32000}});
constexpr auto kMistral = std::to_array<Default>({{"hidden_size", 4096},
                                                  {"intermediate_size", 14336},
                                                  {"num_hidden_layers", 32},
                                                  {"num_attention_heads", 32},
                                                  {"num_key_value_heads", 8},
                                                  {"vocab_size", 32000}});
constexpr auto kGemma = std::to_array<Default>({{"hidden_size", 3072},
                                                {"intermediate_size", 24576},
                                                {"num_hidden_layers", 28},
                                                {"num_attention_heads", 16},
                                                {"num_key_value_heads", 16},
                                                {"head_dim", 256},
                                                {"vocab_size", 256000}});
constexpr auto kGemma2 = std::to_array<Default>({{"hidden_size", 2304},
                                                 {"intermediate_size", 9216},
                                                 {"num_hidden_layers", 26},
                                                 {"num_attention_heads", 8},
                                                 {"num_key_value_heads", 4},
                                                 {"head_dim", 256},
                                                 {"vocab_size", 256000}});
constexpr auto kGemma3 = std::to_array<Default>({{"hidden_size", 2304},
                                                 {"intermediate_size", 9216},
                                                 {"num_hidden_layers", 26},
                                                 {"num_attention_heads", 8},
                                                 {"num_key_value_heads", 4},
                                                 {"head_dim", 256},
                                                 {"vocab_size", 262208}});

std::span<const Default> defaults_of(std::string_view family) {
  if (family == "llama") return kLlama;
  if (family == "mistral") return kMistral;
  if (family == "gemma") return kGemma;
  if (family == "gemma2") return kGemma2;
  if (family == "gemma3_text") return kGemma3;
  return {};
}

}  // namespace

std::optional<Node> text_part(const Node& config) {
  const Node* inside = config.find("text_config");
  Node part = inside != nullptr && inside->is_map() ? *inside : config;
  const std::string family = family_of(config, part);
  if (find_language_family(family) == nullptr) return std::nullopt;
  for (const Default& usual : defaults_of(family)) {
    if (part.find(usual.key) == nullptr) part.set(usual.key, Node::integer(usual.value));
  }
  part.set("model_type", Node::string(family));
  if (inside != nullptr) part.erase("architectures");  // the head is the whole model's
  if (const Node* tied = config.find("tie_word_embeddings");
      tied != nullptr && part.find("tie_word_embeddings") == nullptr)
    part.set("tie_word_embeddings", *tied);
  return part;
}

}  // namespace memfathom

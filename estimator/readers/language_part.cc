#include "estimator/readers/language_part.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "estimator/models/language/families.h"
#include "estimator/readers/model_config.h"
#include "estimator/readers/reading.h"

namespace memfathom {
namespace {

bool is_known(std::string_view type) {
  const std::vector<std::string_view> known = language_model_types();
  return std::binary_search(known.begin(), known.end(), type);
}

// The family of the language model inside: some have a name of their own for the same layers.
std::string inner_type(const Node& config, const Node& part) {
  const std::string type = text_at(part, "model_type");
  for (const char* alias : {"qwen2_vl", "qwen2_vl_text", "qwen2_5_vl", "qwen2_5_vl_text"}) {
    if (type == alias) return "qwen2";
  }
  if (type == "qwen3_vl_text") return "qwen3";
  if (type == "qwen3_vl_moe_text") return "qwen3_moe";
  return type.empty() && text_at(config, "model_type").starts_with("llava") ? "llama" : type;
}

struct Default {
  const char* key;
  std::int64_t value;
};

// Published configs leave out what is the library's default.
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

constexpr auto kGemma3 = std::to_array<Default>({{"hidden_size", 2304},
                                                 {"intermediate_size", 9216},
                                                 {"num_hidden_layers", 26},
                                                 {"num_attention_heads", 8},
                                                 {"num_key_value_heads", 4},
                                                 {"head_dim", 256},
                                                 {"vocab_size", 262208}});

template <typename Defaults>
void complete(const Defaults& defaults, Node& part) {
  for (const Default& known : defaults) {
    if (part.find(known.key) == nullptr) part.set(known.key, Node::integer(known.value));
  }
}

void name_head(const Node& config, const std::string& file, MergedJob& notes) {
  static constexpr std::array<std::string_view, 6> kOwnHeads{"bert",    "camembert",   "distilbert",
                                                             "roberta", "xlm-roberta", "t5"};
  if (std::find(kOwnHeads.begin(), kOwnHeads.end(), text_at(config, "model_type")) !=
      kOwnHeads.end())
    return;
  const Node* named = value_at(config, "architectures");
  if (named == nullptr || !named->is_list() || named->items().empty()) return;
  const Node& first = named->items().front();
  if (!first.is_string() || (first.as_string().find("Classification") == std::string::npos &&
                             first.as_string().find("RewardModel") == std::string::npos))
    return;
  notes.not_modelled.push_back(
      fmt::format("{}: the head of {}; a language model's head and loss over the vocabulary are "
                  "counted, which take more",
                  file, first.as_string()));
}

}  // namespace

void take_language_part(Node& document, MergedJob& notes) {
  if (value_at(document, "model.config") == nullptr) return;
  const Node config = model_config(document);
  if (!config.is_map()) return;
  const std::string type = text_at(config, "model_type");
  const std::string file = config.file();
  if (is_known(type)) return name_head(config, file, notes);
  const Node* inside = value_at(config, "text_config");
  if (type == "clip" || (inside == nullptr && value_at(config, "vision_config") == nullptr)) return;
  Node part = inside != nullptr && inside->is_map() ? *inside : config;
  const std::string inner = inner_type(config, part);
  if (!is_known(inner)) return;
  if (inner == "llama") complete(kLlama, part);
  if (inner == "mistral") complete(kMistral, part);
  if (inner == "gemma3_text") complete(kGemma3, part);
  part.set("model_type", Node::string(inner));
  if (const Node* tied = config.find("tie_word_embeddings");
      tied != nullptr && part.find("tie_word_embeddings") == nullptr)
    part.set("tie_word_embeddings", *tied);
  document.assign("model.config", std::move(part));
  notes.not_modelled.push_back(
      fmt::format("{}: what {} has beside its language model, a {}; images count as tokens of the "
                  "sequence, their encoder does not",
                  file, type, inner));
}

}  // namespace memfathom

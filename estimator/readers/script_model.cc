#include "estimator/readers/script_model.h"

#include <fmt/format.h>

#include <array>
#include <string>
#include <utility>

#include "estimator/models/presets.h"
#include "estimator/readers/builtin_family.h"

namespace memfathom {
namespace {

constexpr std::array<std::string_view, 5> kSections{"", "model.", "data.", "train.", "training."};

const Node* name_in(const Node& tree) {
  const Node* name = anywhere(tree, {"model_name", "model_type", "model_name_or_path",
                                     "pretrained_model_name_or_path", "arch"});
  // A bare "name" is the model's only in its own section.
  for (const char* key : {"model.name", "model"}) {
    if (name == nullptr) name = value_at(tree, key);
  }
  return name != nullptr && name->is_string() ? name : nullptr;
}

// A width, a depth and heads are a transformer; which one, the file does not say: with a width of
// its feed-forward layers a Llama, which large trainings are, else a GPT-2.
void set_transformer(const Node& width, const Node& depth, const Node& heads, ParsedFile& parsed) {
  const Node& tree = parsed.content;
  const Node* inner = anywhere(tree, {"ffn_hidden_size", "intermediate_size"});
  const bool llama = inner != nullptr;
  const auto set = [&](const char* of_llama, const char* of_gpt2, std::int64_t value) {
    parsed.set(fmt::format("model.config.{}", llama ? of_llama : of_gpt2), Node::integer(value));
  };
  const auto said = [&](std::initializer_list<std::string_view> keys, std::int64_t otherwise) {
    const Node* value = anywhere(tree, keys);
    return value != nullptr ? value->as_int(1) : otherwise;
  };
  parsed.set("model.config.model_type", Node::string(llama ? "llama" : "gpt2"));
  set("hidden_size", "n_embd", width.as_int(1));
  set("num_hidden_layers", "n_layer", depth.as_int(1));
  set("num_attention_heads", "n_head", heads.as_int(1));
  if (llama) {
    set("intermediate_size", "", inner->as_int(1));
    set("num_key_value_heads", "",
        said({"num_query_groups", "num_key_value_heads"}, heads.as_int(1)));
  }
  set("max_position_embeddings", "n_positions",
      said({"block_size", "seq_length", "encoder_seq_length", "max_position_embeddings"}, 1024));
  set("vocab_size", "vocab_size", said({"vocab_size", "padded_vocab_size"}, llama ? 32000 : 50304));
  parsed.assumptions.push_back(
      fmt::format("{}: a width, a depth and heads are counted as a {} of those; give a config.json "
                  "(--model FOLDER) for another shape",
                  parsed.file, llama ? "Llama" : "GPT-2"));
}

}  // namespace

std::span<const std::string_view> script_sections() { return kSections; }

const Node* anywhere(const Node& tree, std::initializer_list<std::string_view> keys) {
  for (const std::string_view section : kSections) {
    for (const std::string_view key : keys) {
      if (const Node* value = value_at(tree, std::string(section) + std::string(key))) return value;
    }
  }
  return nullptr;
}

void set_script_model(ParsedFile& parsed) {
  const Node& tree = parsed.content;
  const Node* name = name_in(tree);
  const Node* width = anywhere(tree, {"hidden_dim", "hidden_size", "n_embd"});
  const Node* depth = anywhere(tree, {"num_layers", "n_layers", "n_layer"});
  const Node* heads = anywhere(tree, {"num_attention_heads", "n_head", "n_heads"});
  const bool is_network =
      name != nullptr && (is_builtin_family(name->as_string()) || width != nullptr);
  if (name != nullptr && !is_network) {
    parsed.base_model = name->as_string();
  } else if (name == nullptr && width != nullptr && depth != nullptr && heads != nullptr) {
    set_transformer(*width, *depth, *heads, parsed);
  } else if (name != nullptr || width != nullptr) {
    // A width without a name is completed by own_family.h.
    if (name != nullptr) parsed.set("model.config.model_type", *name);
    if (width != nullptr) parsed.set("model.config.hidden_size", Node::integer(width->as_int(1)));
    if (depth != nullptr)
      parsed.set("model.config.num_hidden_layers", Node::integer(depth->as_int(1)));
  }
}

}  // namespace memfathom

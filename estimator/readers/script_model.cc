#include "estimator/readers/script_model.h"

#include <fmt/format.h>

#include <array>
#include <string>
#include <utility>

#include "core/lowercase.h"
#include "core/suggest.h"
#include "estimator/models/presets.h"
#include "estimator/readers/builtin_family.h"

namespace memfathom {
namespace {

constexpr auto kSections = std::to_array<std::string_view>(
    {"", "model.", "data.", "train.", "training.", "model.params.", "model.args.", "model.kwargs.",
     "model_params.", "fno.", "unet."});

// Where a bare "width" is the network's, not the image's.
constexpr auto kModelSections = std::to_array<std::string_view>(
    {"model.", "model.params.", "model.args.", "model.kwargs.", "model_params.", "fno.", "unet."});

const Node* in_model(const Node& tree, std::initializer_list<std::string_view> keys) {
  for (const std::string_view section : kModelSections) {
    for (const std::string_view key : keys) {
      if (const Node* value = value_at(tree, std::string(section) + std::string(key))) return value;
    }
  }
  return nullptr;
}

// "FNO2d" and "U-Net" are the families of those names.
std::string family_in(std::string name) {
  name = lowercase(std::move(name));
  std::erase_if(name, [](char c) { return c == '-' || c == '_'; });
  for (const std::string_view ending : {"1d", "2d", "3d"}) {
    if (name.ends_with(ending)) name.erase(name.size() - 2);
  }
  return name;
}

const Node* name_in(const Node& tree) {
  const Node* name = anywhere(tree, {"model_name", "model_type", "model_name_or_path",
                                     "pretrained_model_name_or_path", "arch"});
  // A bare "name" is the model's only in its own section.
  for (const char* key :
       {"model.name", "model.type", "model.kind", "model.architecture", "model"}) {
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

// One number, one for each direction in a list, or in keys of their own.
void set_modes(ParsedFile& parsed) {
  const Node& tree = parsed.content;
  if (const Node* modes = anywhere(tree, {"n_modes", "modes", "num_modes"})) {
    parsed.set("model.config.modes", *modes);
    return;
  }
  Node modes = Node::list();
  for (const char* key : {"modes1", "modes2", "modes3"}) {
    if (const Node* count = anywhere(tree, {key})) modes.append(Node::integer(count->as_int(1)));
  }
  if (!modes.items().empty()) parsed.set("model.config.modes", std::move(modes));
}

// Channels that double from level to level are a U-Net's; the last level has no way down.
void set_levels(ParsedFile& parsed) {
  const Node* factors = anywhere(parsed.content, {"channel_mult", "channel_mults", "dim_mults"});
  if (factors == nullptr || !factors->is_list()) return;
  std::int64_t expected = 1;
  for (const Node& factor : factors->items()) {
    if (!factor.is_int() || factor.as_int() != expected)
      factors->refuse(
          "a U-Net whose channels do not double from level to level is not known here; describe it "
          "with model.layers (docs/jobs.md)");
    expected *= 2;
  }
  if (factors->items().size() > 1)
    parsed.set("model.config.layers",
               Node::integer(static_cast<std::int64_t>(factors->items().size()) - 1));
}

void set_channels(ParsedFile& parsed) {
  const Node& tree = parsed.content;
  if (const Node* in = anywhere(tree, {"in_channels", "input_channels", "data_channels", "in_dim"}))
    parsed.set("model.config.in_channels", Node::integer(in->as_int(1)));
  if (const Node* out = anywhere(tree, {"out_channels", "output_channels", "out_dim"}))
    parsed.set("model.config.out_channels", Node::integer(out->as_int(1)));
}

}  // namespace

bool is_script_model(const Node* model) {
  if (model == nullptr || !model->is_map() || model->entries().empty()) return false;
  static constexpr auto kOfJobs = std::to_array<std::string_view>(
      {"preset", "config", "layers", "modules", "trace", "parameters", "family", "input", "loss",
       "num_classes", "load", "train", "adapter", "part"});
  bool is_foreign = false;
  for (const Node& entry : model->entries()) {
    if (entry.key().starts_with("freeze_")) return true;
    for (const std::string_view known : kOfJobs) {
      if (entry.key() == known || is_near_miss(entry.key(), known)) return false;
    }
    is_foreign = true;
  }
  return is_foreign;
}

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
  const std::string family = name != nullptr ? family_in(name->as_string()) : "";
  const Node* width = anywhere(tree, {"hidden_dim", "hidden_size", "n_embd", "hidden_channels"});
  if (width == nullptr) width = in_model(tree, {"width"});
  if (width == nullptr && family == "unet") width = anywhere(tree, {"base_channels"});
  const Node* depth = anywhere(tree, {"num_layers", "n_layers", "n_layer"});
  if (depth == nullptr) depth = in_model(tree, {"depth"});
  const Node* heads = anywhere(tree, {"num_attention_heads", "n_head", "n_heads"});
  const bool is_network = name != nullptr && (is_builtin_family(family) || width != nullptr);
  if (name != nullptr && !is_network) {
    parsed.base_model = name->as_string();
  } else if (name == nullptr && width != nullptr && depth != nullptr && heads != nullptr) {
    set_transformer(*width, *depth, *heads, parsed);
  } else if (name != nullptr || width != nullptr) {
    // A width without a name is completed by own_family.h.
    if (name != nullptr)
      parsed.set("model.config.model_type",
                 is_builtin_family(family) ? Node::string(family) : *name);
    if (family == "fno") set_modes(parsed);
    if (family == "unet") set_levels(parsed);
    if (family == "fno" || family == "unet") set_channels(parsed);
    if (width != nullptr) parsed.set("model.config.hidden_size", Node::integer(width->as_int(1)));
    if (depth != nullptr)
      parsed.set("model.config.num_hidden_layers", Node::integer(depth->as_int(1)));
  }
}

}  // namespace memfathom

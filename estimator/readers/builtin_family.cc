#include "estimator/readers/builtin_family.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "estimator/models/registry.h"
#include "estimator/readers/parsed_file.h"

namespace memfathom {
namespace {

constexpr std::int64_t kDefaultModes = 12;

bool is_family(const Node* name) {
  return name != nullptr && name->is_string() && is_builtin_family(name->as_string());
}

void rename(Node& config, std::string_view from, std::string_view to) {
  const Node* value = config.find(from);
  if (value == nullptr) return;
  Node kept = *value;
  config.erase(from);
  if (config.find(to) == nullptr) config.set(to, std::move(kept));
}

// No more modes than half of the smaller side has.
std::int64_t modes_for(const Node& document) {
  std::int64_t side = 2 * kDefaultModes;
  if (const Node* size = value_at(document, "training.image_size")) {
    if (size->is_list()) {
      for (const Node& extent : size->items()) side = std::min(side, extent.as_int(1));
    } else {
      side = std::min(side, size->as_int(1));
    }
  }
  return std::clamp<std::int64_t>(side / 2, 1, kDefaultModes);
}

// A width, a depth and a length of sequences are a transformer's, of which heads and vocabulary are
// not said.
Node decoder_of(const Node& config, const Node& document, std::vector<std::string>& assumptions) {
  constexpr std::int64_t kHeadSize = 64;       // GPT-2's at every size
  constexpr std::int64_t kVocabulary = 50257;  // GPT-2's
  const std::int64_t width = config.at("hidden_size").as_int(1, 1 << 20);
  if (width % kHeadSize != 0)
    config.at("hidden_size")
        .refuse(
            "with a sequence length it is a transformer's width, and no multiple of 64; give "
            "its config.json with --model");
  Node decoder = Node::map();
  decoder.set("model_type", Node::string("gpt2"));
  decoder.set("n_embd", Node::integer(width));
  decoder.set("n_layer", Node::integer(config.at("num_hidden_layers").as_int(1, 1 << 16)));
  decoder.set("n_head", Node::integer(width / kHeadSize));
  decoder.set("n_positions",
              Node::integer(value_at(document, "training.sequence_length")->as_int(1, 1 << 30)));
  decoder.set("vocab_size", Node::integer(kVocabulary));
  assumptions.push_back(
      fmt::format("no model was named, only a width, a depth and a length: a GPT-2 of {} heads of "
                  "64 and a vocabulary of {} was assumed; --model FOLDER gives its own shape",
                  width / kHeadSize, kVocabulary));
  return decoder;
}

}  // namespace

bool is_builtin_family(std::string_view name) {
  const std::span<const ModelFamily> known = model_families();
  return std::any_of(known.begin(), known.end(), [&](const ModelFamily& family) {
    return family.kind == ModelKind::kBuiltin && family.name == name;
  });
}

void complete_builtin_family(Node& document, std::vector<std::string>& assumptions) {
  const Node* preset = value_at(document, "model.preset");
  const Node* written = value_at(document, "model.config");
  if (written != nullptr && !written->is_map()) return;
  const bool by_name = is_family(preset);
  if (written == nullptr && !by_name) return;
  Node config = written != nullptr ? *written : Node::map();
  if (by_name) config.set("model_type", Node::string(preset->as_string()));
  const Node* type = config.find("model_type");
  if (type == nullptr && config.find("_class_name") == nullptr &&
      value_at(document, "training.sequence_length") != nullptr && preset == nullptr &&
      config.find("hidden_size") != nullptr && config.find("num_hidden_layers") != nullptr &&
      config.entries().size() == 2) {
    document.assign("model.config", decoder_of(config, document, assumptions));
    return;
  }
  if (type == nullptr && config.find("_class_name") == nullptr &&
      config.find("hidden_size") != nullptr && preset == nullptr && config.entries().size() <= 2) {
    assumptions.emplace_back(
        "no model was named, only a width and a depth: a Fourier neural operator was assumed "
        "(--model unet for another)");
    config.set("model_type", Node::string("fno"));
  }
  if (!is_family(config.find("model_type"))) return;
  rename(config, "hidden_size", "width");
  rename(config, "num_hidden_layers", "layers");
  if (config.at("model_type").as_string() == "fno" && config.find("modes") == nullptr) {
    const std::int64_t modes = modes_for(document);
    config.set("modes", Node::integer(modes));
    assumptions.push_back(
        fmt::format("the number of Fourier modes was not said: {} in each direction", modes));
  }
  Node model = Node::map();
  model.set("config", std::move(config));
  document.assign("model", std::move(model));
}

}  // namespace memfathom

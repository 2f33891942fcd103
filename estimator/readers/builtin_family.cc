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

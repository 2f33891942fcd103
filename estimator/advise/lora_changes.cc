#include <fmt/format.h>

#include <algorithm>

#include "core/document_path.h"
#include "estimator/advise/changes.h"
#include "estimator/models/registry.h"

namespace memfathom {
namespace {

constexpr std::int64_t kDefaultLoraRank = 16;
constexpr std::int64_t kSmallRank = 4;

// diffusers loads no adapters into unconditional U-Nets, so none are suggested for their preset.
LoraTargets preset_targets(const Node& config) {
  const ModelFamily* family = find_family(config);
  if (family == nullptr || family->name == "UNet2DModel") return FamilyTraits{}.lora_targets;
  return family->traits.lora_targets;
}

bool is_trained(const Node& module) {
  const Node* train = module.find("train");
  return train == nullptr || (train->is_string() && train->as_string() == "full");
}

void add_smaller(const std::string& key, const char* what, std::int64_t rank,
                 std::vector<SingleChange>& changes) {
  const std::int64_t smaller = std::max(kSmallRank, rank / 4);
  if (smaller >= rank) return;
  changes.push_back({"rank",
                     fmt::format("{} {} -> {}", what, rank, smaller),
                     "less adapter capacity",
                     ChangeGroup::kRank,
                     ChangeKind::kDifferent,
                     2,
                     {{key, Node::integer(smaller)}}});
}

}  // namespace

LoraTargets usual_lora_targets(const ModelSpec& model) {
  if (const NetworkConfig* config = model.config()) return traits_of(config->config).lora_targets;
  if (const PresetNetwork* preset = model.preset()) return preset_targets(preset->config);
  return FamilyTraits{}.lora_targets;
}

Patch lora_patch(const Job& job) {
  const ModelSpec& model = job.model;
  Patch patch{{"training.lora.rank", Node::integer(kDefaultLoraRank)}};
  Node targets = Node::list();
  const auto add_targets = [&](const ModelSpec& part) {
    for (const std::string_view target : usual_lora_targets(part)) {
      const auto is_same = [&](const Node& known) { return known.as_string() == target; };
      if (!target.empty() && std::none_of(targets.items().begin(), targets.items().end(), is_same))
        targets.append(Node::string(std::string(target)));
    }
  };
  const ModuleList* list = model.modules();
  if (list == nullptr) {
    add_targets(model);
  } else {
    for (std::size_t i = 0; i < list->modules.size(); ++i) {
      const ModuleSpec& module = list->modules[i];
      if (!is_trained(module.source)) continue;
      add_targets(module.model);
      patch.push_back({fmt::format("model.modules[{}].train", i), Node::string("lora")});
    }
  }
  patch.push_back({"training.lora.targets", std::move(targets)});
  // Without adapters the model is its own reference, and trainers of preferences use that.
  if (job.training.preference && job.training.reference == Reference::kModel)
    patch.push_back(reference_change("disabled-adapter"));
  return patch;
}

void add_lora_changes(const Node& document, const Job& job, std::vector<SingleChange>& changes) {
  const TrainingSpec& training = job.training;
  const Node* modules = document.at("model").find("modules");
  const bool some_trained = modules == nullptr ? is_trained(document.at("model"))
                                               : std::any_of(modules->items().begin(),
                                                             modules->items().end(), is_trained);
  Patch lora = training.lora || !some_trained ? Patch{} : lora_patch(job);
  if (!lora.empty()) {
    changes.push_back({"lora", fmt::format("full training -> LoRA of rank {}", kDefaultLoraRank),
                       "only adapters are trained", ChangeGroup::kTrainable, ChangeKind::kDifferent,
                       3, lora});
  }
  // Weights of few bits cannot be trained themselves.
  const bool adapters = training.lora || !lora.empty();
  if (training.quantization == Quantization::kNone && adapters) {
    changes.push_back(
        {"qlora",
         training.lora
             ? "quantization none -> nf4"
             : fmt::format("full training -> LoRA of rank {} over 4-bit weights", kDefaultLoraRank),
         "frozen weights in 4 bits; a little less accurate", ChangeGroup::kTrainable,
         ChangeKind::kDifferent, 4, joined({{"training.quantization", Node::string("nf4")}}, lora),
         true});
  }
  if (training.lora) add_smaller("training.lora.rank", "LoRA rank", training.lora->rank, changes);
  for (std::size_t i = 0; modules != nullptr && i < modules->items().size(); ++i) {
    if (const Node* rank = value_at(modules->items()[i], "adapter.rank"))
      add_smaller(fmt::format("model.modules[{}].adapter.rank", i), "adapter rank", rank->as_int(1),
                  changes);
  }
  if (const Node* rank = value_at(document, "model.adapter.rank"))
    add_smaller("model.adapter.rank", "adapter rank", rank->as_int(1), changes);
}

}  // namespace memfathom

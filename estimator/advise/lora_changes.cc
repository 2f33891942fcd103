#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "core/document_path.h"
#include "estimator/advise/changes.h"
#include "estimator/readers/model_config.h"

namespace memfathom {
namespace {

constexpr std::int64_t kDefaultLoraRank = 16;
constexpr std::int64_t kSmallRank = 4;

// What PEFT adapts where one names nothing: queries and values, by the names each family has.
struct LoraFamily {
  std::string_view type;  // how model_type, _class_name or the preset's name begins
  std::array<std::string_view, 2> targets;
};
constexpr auto kFamilies = std::to_array<LoraFamily>({
    {"gpt2", {"c_attn", ""}},
    {"gpt_neox", {"query_key_value", ""}},
    {"falcon", {"query_key_value", ""}},
    {"bloom", {"query_key_value", ""}},
    {"bert", {"query", "value"}},
    {"roberta", {"query", "value"}},
    {"t5", {"q", "v"}},
    {"CogVideoX", {"to_q", "to_v"}},
    {"UNet2D", {"to_q", "to_v"}},
    {"cogvideox-", {"to_q", "to_v"}},
    {"sd", {"to_q", "to_v"}},
    {"vit_", {"qkv", ""}},
});

std::array<std::string_view, 2> targets_of(const Node& holder) {
  const Node config = model_config(holder);
  for (const Node* type : {value_at(config, "model_type"), value_at(config, "_class_name"),
                           value_at(holder, "model.preset")}) {
    if (type == nullptr || !type->is_string()) continue;
    for (const LoraFamily& family : kFamilies) {
      if (type->as_string().starts_with(family.type)) return family.targets;
    }
  }
  return {"q_proj", "v_proj"};
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
                     "smaller adapters learn less",
                     ChangeGroup::kRank,
                     6,
                     {{key, Node::integer(smaller)}}});
}

}  // namespace

Patch lora_patch(const Node& holder) {
  Patch patch{{"training.lora.rank", Node::integer(kDefaultLoraRank)}};
  Node targets = Node::list();
  const auto add_targets = [&](const Node& part) {
    for (const std::string_view target : targets_of(part)) {
      const auto is_same = [&](const Node& known) { return known.as_string() == target; };
      if (!target.empty() && std::none_of(targets.items().begin(), targets.items().end(), is_same))
        targets.append(Node::string(std::string(target)));
    }
  };
  const Node* modules = holder.at("model").find("modules");
  if (modules == nullptr) {
    add_targets(holder);
  } else {
    for (std::size_t i = 0; i < modules->items().size(); ++i) {
      const Node& module = modules->items()[i];
      if (!is_trained(module)) continue;
      add_targets(module);
      patch.push_back({fmt::format("model.modules[{}].train", i), Node::string("lora")});
    }
  }
  patch.push_back({"training.lora.targets", std::move(targets)});
  return patch;
}

void add_lora_changes(const Node& document, const Job& job, std::vector<SingleChange>& changes) {
  const TrainingSpec& training = job.training;
  const Node* modules = document.at("model").find("modules");
  const bool some_trained = modules == nullptr ? is_trained(document.at("model"))
                                               : std::any_of(modules->items().begin(),
                                                             modules->items().end(), is_trained);
  Patch lora = training.lora || !some_trained ? Patch{} : lora_patch(document);
  if (!lora.empty()) {
    changes.push_back({"lora", fmt::format("full training -> LoRA of rank {}", kDefaultLoraRank),
                       "only adapters are trained", ChangeGroup::kTrainable, 10, lora});
  }
  // Weights of few bits cannot be trained themselves.
  const bool adapters = training.lora || !lora.empty();
  if (training.quantization == Quantization::kNone && adapters) {
    changes.push_back(
        {"qlora",
         training.lora
             ? "quantization none -> nf4"
             : fmt::format("full training -> LoRA of rank {} over 4-bit weights", kDefaultLoraRank),
         "frozen weights in 4 bits; slower steps, a little less accurate", ChangeGroup::kTrainable,
         training.lora ? 11 : 14, joined({{"training.quantization", Node::string("nf4")}}, lora)});
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

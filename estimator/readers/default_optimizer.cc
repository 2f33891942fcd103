#include "estimator/readers/default_optimizer.h"

#include <fmt/format.h>

#include <algorithm>

namespace memfathom {
Node trainer_default_optimizer() {
  Node optimizer = Node::map();
  optimizer.set("name", Node::string("adamw"));
  optimizer.set("implementation", Node::string("trainer"));
  return optimizer;
}

Node fused_adamw() { return Node::string("adamw-fused"); }

void assume_optimizer(const std::vector<ParsedFile>& files, Node& document,
                      std::vector<std::string>& assumptions) {
  const Node* mode = value_at(document, "training.mode");
  const bool trains = mode == nullptr || (mode->is_string() && mode->as_string() == "train");
  if (!trains || value_at(document, "training.optimizer") != nullptr) return;
  const auto with_default =
      std::find_if(files.rbegin(), files.rend(),
                   [](const ParsedFile& parsed) { return !parsed.default_optimizer.is_null(); });
  if (with_default == files.rend()) return;
  const bool is_trainer = with_default->default_optimizer.same_value(trainer_default_optimizer());
  assumptions.push_back(fmt::format(
      "{} names no optimizer: {}", with_default->file,
      is_trainer ? "AdamW as transformers' Trainer has it by default, fused from transformers "
                   "4.54 with PyTorch 2.8 on"
                 : "the library's default, fused AdamW"));
  document.assign("training.optimizer", with_default->default_optimizer);
}

}  // namespace memfathom

#include "estimator/readers/language_model_part.h"

#include <fmt/format.h>

#include <optional>
#include <string>

#include "estimator/models/blocks/task_head.h"
#include "estimator/models/registry.h"
#include "estimator/models/text_config.h"
#include "estimator/models/vision_language.h"
#include "estimator/readers/model_config.h"
#include "estimator/readers/parsed_file.h"

namespace memfathom {
namespace {

// The ranks of these hold parts of a language model's blocks; a tower has no place among them yet.
bool is_split(const Node& document) {
  for (const char* key : {"parallel.tensor", "parallel.pipeline"}) {
    const Node* ways = value_at(document, key);
    if (ways != nullptr && ways->is_int() && ways->as_int() > 1) return true;
  }
  return false;
}

void name_head(const Node& config, const std::string& file, bool trains, MergedJob& notes) {
  const std::optional<TaskHead> head = named_head(config);
  if (head == TaskHead::kVocabulary) return;
  const bool own_only = traits_of(config).has_own_head_only;
  const Node& first = config.at("architectures").items().front();
  if (head == TaskHead::kHiddenStates && (trains || own_only)) {
    notes.assumptions.push_back(
        fmt::format("{}: {} has no head; the one over the vocabulary is counted with it", file,
                    first.as_string()));
    return;
  }
  if (head && !own_only) return;
  notes.not_modelled.push_back(
      fmt::format("{}: the head of {}; a language model's head and loss over the vocabulary are "
                  "counted, which take more",
                  file, first.as_string()));
}

}  // namespace

void replace_by_language_model(Node& document, MergedJob& notes) {
  if (value_at(document, "model.config") == nullptr) return;
  const Node config = model_config(document);
  if (!config.is_map()) return;
  const std::string type = text_at(config, "model_type");
  const std::string file = config.file();
  if (find_language_family(type) != nullptr) {
    const std::string mode = text_at(document, "training.mode");
    return name_head(config, file, mode.empty() || mode == "train", notes);
  }
  if (type == "clip" ||
      (value_at(config, "text_config") == nullptr && value_at(config, "vision_config") == nullptr))
    return;
  if (is_vision_language(config) && !is_split(document)) return;
  std::optional<Node> part = text_part(config);
  if (!part) return;
  const std::string inner = text_at(*part, "model_type");
  document.assign("model.config", std::move(*part));
  notes.not_modelled.push_back(
      fmt::format("{}: only the language model of {} is modelled, a {}; images count as tokens of "
                  "the sequence, and their encoder is not counted",
                  file, type, inner));
  notes.unread.push_back({file, "vision_config", "model", "", "", ""});
}

}  // namespace memfathom

#include "estimator/readers/model_config.h"

#include <optional>

#include "estimator/models/presets.h"
#include "estimator/models/resolve_model.h"
#include "estimator/readers/parsed_file.h"

namespace memfathom {

Node model_config(const Node& holder) {
  if (const Node* config = value_at(holder, "model.config")) {
    return config->is_string() ? load_config(*config) : *config;
  }
  const Node* preset = value_at(holder, "model.preset");
  if (preset == nullptr || !preset->is_string()) return {};
  return preset_config(preset->as_string()).value_or(Node());
}

}  // namespace memfathom

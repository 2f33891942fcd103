// Image config: the keys that configurations of image models share.
#pragma once

#include <cstdint>
#include <string_view>

#include "core/document.h"
#include "estimator/models/blocks/settings.h"

namespace memfathom {

// One number, or [height, width], as image_size and patch_size of configs are written.
struct ConfigExtent {
  std::int64_t height = 0, width = 0;
};
ConfigExtent extent_or(const Node& config, std::string_view name, std::int64_t fallback);

// Whether the first of a config's `architectures` ends so.
bool is_architecture(const Node& config, std::string_view ending);

// Classes of a config: `num_labels`, or as many as `id2label` names.
std::int64_t label_count(const Node& config, std::int64_t fallback);

// Images must have the size of the config, whose position table has a row per patch.
void require_config_size(const Node& config, const ModelSettings& settings,
                         const ConfigExtent& image);

}  // namespace memfathom

#include "estimator/models/blocks/image_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "estimator/models/blocks/config_reader.h"

namespace memfathom {
namespace {

constexpr std::int64_t kMaxPixels = 1 << 20;
constexpr std::int64_t kMaxLabels = std::int64_t{1} << 24;

}  // namespace

ConfigExtent extent_or(const Node& config, std::string_view name, std::int64_t fallback) {
  const Node* found = find_any(config, {name});
  if (found == nullptr) return {fallback, fallback};
  if (!found->is_list()) {
    const std::int64_t size = found->as_int(1, kMaxPixels);
    return {size, size};
  }
  const std::vector<std::int64_t> size = found->as_ints(1, kMaxPixels);
  if (size.size() != 2) found->refuse("it must be one number or [height, width]");
  return {size[0], size[1]};
}

bool is_architecture(const Node& config, std::string_view ending) {
  const Node* named = config.find("architectures");
  return named != nullptr && named->is_list() && !named->items().empty() &&
         named->items()[0].is_string() && named->items()[0].as_string().ends_with(ending);
}

std::int64_t label_count(const Node& config, std::int64_t fallback) {
  if (const Node* labels = find_any(config, {"id2label"}); labels != nullptr && labels->is_map())
    fallback = static_cast<std::int64_t>(labels->entries().size());
  return count_or(config, {"num_labels"}, std::max<std::int64_t>(fallback, 1), kMaxLabels);
}

void require_config_size(const Node& config, const ModelSettings& settings,
                         const ConfigExtent& image) {
  if (settings.image_height == 0 ||
      (settings.image_height == image.height && settings.image_width == image.width))
    return;
  config.refuse(
      fmt::format("its position table is for images of {} x {}, and training.image_size is {} x "
                  "{}; change image_size of the config, or leave training.image_size out",
                  image.height, image.width, settings.image_height, settings.image_width));
}

}  // namespace memfathom

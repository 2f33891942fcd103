#include "estimator/models/stack/keys.h"

#include <fmt/format.h>

namespace memfathom {

Shape extents_or(const Node& spec, std::string_view key, int dims, std::int64_t fallback,
                 std::int64_t least) {
  const Node* node = spec.find(key);
  Shape extents;
  if (node == nullptr || !node->is_list()) {
    const std::int64_t value = node == nullptr ? fallback : node->as_int(least, kLargestExtent);
    for (int i = 0; i < dims; ++i) extents.push_back(value);
    return extents;
  }
  if (node->items().size() != static_cast<std::size_t>(dims)) {
    node->refuse(fmt::format("it must be one number or a list of {}", dims));
  }
  for (const std::int64_t value : node->as_ints(least, kLargestExtent)) extents.push_back(value);
  return extents;
}

}  // namespace memfathom

// Keys of layers: the readers that all layer types share.
#pragma once

#include <cstdint>
#include <optional>

#include "core/document.h"
#include "core/shape.h"

namespace memfathom {

// No extent, count or width of a layer may exceed this: far above any network, far below overflow.
inline constexpr std::int64_t kLargestExtent = std::int64_t{1} << 40;

inline std::int64_t extent_or(const Node& spec, std::string_view key, std::int64_t fallback,
                              std::int64_t least = 1) {
  const Node* node = spec.find(key);
  return node == nullptr || node->is_null() ? fallback : node->as_int(least, kLargestExtent);
}

inline std::int64_t extent_of(const Node& spec, std::string_view key) {
  return spec.at(key).as_int(1, kLargestExtent);
}

inline double fraction_or(const Node& spec, std::string_view key, double fallback) {
  const Node* node = spec.find(key);
  return node == nullptr ? fallback : node->as_number(0, 1);
}

inline bool flag_or(const Node& spec, std::string_view key, bool fallback) {
  const Node* node = spec.find(key);
  return node == nullptr ? fallback : node->as_bool();
}

// A number for all dimensions, or a list of one per dimension.
Shape extents_or(const Node& spec, std::string_view key, int dims, std::int64_t fallback,
                 std::int64_t least);

}  // namespace memfathom

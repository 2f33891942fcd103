// AllocatorOptions: the parsed option string of the framework (PYTORCH_CUDA_ALLOC_CONF).
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <string_view>

#include "core/bytes.h"
#include "core/error.h"

namespace memfathom {

struct AllocatorOptions {
  // Interval i covers sizes from 2^(20+i) bytes; the first and last also cover sizes outside the
  // range.
  static constexpr int kRoundingIntervals = 16;
  static constexpr Bytes kUnlimited{std::numeric_limits<std::int64_t>::max()};

  Bytes max_split_size = kUnlimited;  // larger blocks are never split
  // By how much an unsplittable block may exceed a request.
  Bytes max_non_split_rounding{std::int64_t{20} << 20};
  std::array<std::int64_t, kRoundingIntervals> roundup_power2_divisions{};  // 0: round to 512 bytes
  bool expandable_segments = false;

  bool operator==(const AllocatorOptions&) const = default;
};

// Parses "max_split_size_mb:128,expandable_segments:True". An empty text gives the defaults. Throws
// Error(kInput) for unknown and malformed options and for options whose effect on memory is not
// modelled.
AllocatorOptions parse_allocator_options(std::string_view text);

}  // namespace memfathom

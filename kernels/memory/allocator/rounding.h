// rounding: how PyTorch's caching allocator rounds requests and sizes segments.
#pragma once

#include <cstdint>

#include "kernels/memory/allocator/options.h"

namespace memfathom {

inline constexpr std::int64_t kMinBlockSize = 512;
inline constexpr std::int64_t kSmallSize = std::int64_t{1}
                                           << 20;  // larger requests use the large pool
inline constexpr std::int64_t kSmallBuffer = std::int64_t{2} << 20;   // a segment of the small pool
inline constexpr std::int64_t kLargeBuffer = std::int64_t{20} << 20;  // a segment for 1 to 10 MiB
inline constexpr std::int64_t kMinLargeAlloc = std::int64_t{10} << 20;
inline constexpr std::int64_t kRoundLarge = std::int64_t{2} << 20;

// The block size a request is rounded up to; `size` is positive and at most 2^60.
std::int64_t round_request(std::int64_t size, const AllocatorOptions& options);

// The segment to request if no cached block fits `size` (already rounded).
constexpr std::int64_t segment_size(std::int64_t size) {
  if (size <= kSmallSize) return kSmallBuffer;
  if (size < kMinLargeAlloc) return kLargeBuffer;
  return (size + kRoundLarge - 1) / kRoundLarge * kRoundLarge;
}

}  // namespace memfathom

#include "kernels/memory/allocator/rounding.h"

#include <algorithm>
#include <bit>

namespace memfathom {

namespace {

int floor_log2(std::uint64_t value) { return 63 - std::countl_zero(value); }

std::int64_t divisions_for(std::int64_t size, const AllocatorOptions& options) {
  const int interval = std::clamp(floor_log2(static_cast<std::uint64_t>(size)) - 20, 0,
                                  AllocatorOptions::kRoundingIntervals - 1);
  return options.roundup_power2_divisions[static_cast<std::size_t>(interval)];
}

// Rounds up to the next of `divisions` equal steps between two powers of two.
std::int64_t round_to_division(std::int64_t size, std::int64_t divisions) {
  const auto value = static_cast<std::uint64_t>(size);
  if (std::has_single_bit(value)) return size;
  const std::uint64_t floor = std::bit_floor(value);
  const std::uint64_t step = floor >> floor_log2(static_cast<std::uint64_t>(divisions));
  if (step == 0) return static_cast<std::int64_t>(floor << 1);
  return static_cast<std::int64_t>((value + step - 1) / step * step);
}

}  // namespace

std::int64_t round_request(std::int64_t size, const AllocatorOptions& options) {
  if (size < kMinBlockSize) return kMinBlockSize;
  const std::int64_t divisions = divisions_for(size, options);
  if (divisions > 1 && size / kMinBlockSize >= divisions && size > kMinBlockSize * divisions) {
    return round_to_division(size, divisions);
  }
  return (size + kMinBlockSize - 1) / kMinBlockSize * kMinBlockSize;
}

}  // namespace memfathom

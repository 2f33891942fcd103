#include "kernels/devices/cpu/portable/tile.h"

#include <cstring>

namespace memfathom::cpu {
namespace {

constexpr int kLanes = 8, kVectors = kTileColumns / kLanes;
// The compiler makes of it what the instruction set has: one register of AVX, two of SSE or NEON.
using Vector [[gnu::vector_size(kLanes * sizeof(float))]] = float;

[[gnu::always_inline]] inline void multiply(std::int64_t depth, const float* a, const float* b,
                                            float* out) {
  Vector sums[kTileRows][kVectors];
  std::memcpy(sums, out, sizeof sums);
  for (std::int64_t k = 0; k < depth; ++k) {
    Vector columns[kVectors];
    std::memcpy(columns, b + k * kTileColumns, sizeof columns);
    // Unrolled, so that the sums stay in registers.
#pragma GCC unroll 6
    for (int r = 0; r < kTileRows; ++r) {
      const float value = a[k * kTileRows + r];
#pragma GCC unroll 2
      for (int v = 0; v < kVectors; ++v) sums[r][v] += columns[v] * value;
    }
  }
  std::memcpy(out, sums, sizeof sums);
}

void tile_of_any(std::int64_t depth, const float* a, const float* b, float* out) {
  multiply(depth, a, b, out);
}

#if defined(__x86_64__)
[[gnu::target("avx2,fma")]] void tile_of_avx2(std::int64_t depth, const float* a, const float* b,
                                              float* out) {
  multiply(depth, a, b, out);
}
#endif

}  // namespace

Tile choose_tile() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return tile_of_avx2;
#endif
  return tile_of_any;
}

}  // namespace memfathom::cpu

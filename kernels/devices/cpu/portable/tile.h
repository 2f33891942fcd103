// tile: the innermost part of a matrix product: a small tile of the result from packed operands.
#pragma once

#include <cstdint>

namespace memfathom::cpu {

constexpr std::int64_t kTileRows = 6, kTileColumns = 16;

// out [kTileRows, kTileColumns] += a . b, where `a` holds kTileRows values and `b` kTileColumns
// values for each of `depth` steps.
using Tile = void (*)(std::int64_t depth, const float* a, const float* b, float* out);

// The fastest one that this processor can run.
Tile choose_tile();

}  // namespace memfathom::cpu

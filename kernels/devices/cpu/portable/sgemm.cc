// Matrix products by blocks: a block of each operand is packed into the order in which the tiles
// read it, small enough for the caches.
#include <algorithm>
#include <cstring>

#include "kernels/devices/cpu/gather.h"
#include "kernels/devices/cpu/gemm.h"
#include "kernels/devices/cpu/portable/tile.h"

namespace memfathom::cpu {
namespace {

// Rows of a, depth, and columns of b of a block: 96 KiB, and 2 MiB.
constexpr std::int64_t kRows = 16 * kTileRows, kDepth = 256, kColumns = 128 * kTileColumns;

std::int64_t rounded_up(std::int64_t value, std::int64_t step) {
  return (value + step - 1) / step * step;
}

// Where an element of a matrix is, transposed or not.
struct View {
  const float* data;
  std::int64_t down, across;

  explicit View(const Matrix& m)
      : data(m.data), down(m.transposed ? 1 : m.leading), across(m.transposed ? m.leading : 1) {}
  const float* at(std::int64_t row, std::int64_t column) const {
    return data + row * down + column * across;
  }
};

// Strips of kTileRows rows; what is missing in the last one is 0.
void pack_rows(const View& a, std::int64_t row, std::int64_t rows, std::int64_t step,
               std::int64_t depth, float alpha, float* to) {
  for (std::int64_t strip = 0; strip < rows; strip += kTileRows) {
    const std::int64_t kept = std::min(kTileRows, rows - strip);
    for (std::int64_t k = 0; k < depth; ++k) {
      for (std::int64_t r = 0; r < kTileRows; ++r)
        *to++ = r < kept ? alpha * *a.at(row + strip + r, step + k) : 0.0f;
    }
  }
}

// Strips of kTileColumns columns.
void pack_columns(const View& b, std::int64_t column, std::int64_t columns, std::int64_t step,
                  std::int64_t depth, float* to) {
  for (std::int64_t strip = 0; strip < columns; strip += kTileColumns) {
    const std::int64_t kept = std::min(kTileColumns, columns - strip);
    for (std::int64_t k = 0; k < depth; ++k, to += kTileColumns) {
      const float* from = b.at(step + k, column + strip);
      if (kept == kTileColumns && b.across == 1) {
        std::memcpy(to, from, kTileColumns * sizeof(float));
        continue;
      }
      for (std::int64_t c = 0; c < kTileColumns; ++c) to[c] = c < kept ? from[c * b.across] : 0.0f;
    }
  }
}

// out += the product of two packed blocks.
void multiply_blocks(Tile tile, const float* a, std::int64_t rows, const float* b,
                     std::int64_t columns, std::int64_t depth, float* out, std::int64_t leading) {
  for (std::int64_t j = 0; j < columns; j += kTileColumns) {
    const std::int64_t width = std::min(kTileColumns, columns - j);
    for (std::int64_t i = 0; i < rows; i += kTileRows) {
      const std::int64_t height = std::min(kTileRows, rows - i);
      float sums[kTileRows * kTileColumns] = {};
      tile(depth, a + i * depth, b + j * depth, sums);
      for (std::int64_t r = 0; r < height; ++r) {
        float* to = out + (i + r) * leading + j;
        const float* from = sums + r * kTileColumns;
        for (std::int64_t c = 0; c < width; ++c) to[c] += from[c];
      }
    }
  }
}

// A factor of 0 also clears what is not a number, as in BLAS.
void scale(float beta, std::int64_t m, std::int64_t n, float* out, std::int64_t leading) {
  if (beta == 1) return;
  for (std::int64_t i = 0; i < m; ++i) {
    float* row = out + i * leading;
    if (beta == 0) {
      std::fill_n(row, n, 0.0f);
    } else {
      for (std::int64_t j = 0; j < n; ++j) row[j] *= beta;
    }
  }
}

}  // namespace

void sgemm(std::int64_t m, std::int64_t n, std::int64_t k, float alpha, const Matrix& a,
           const Matrix& b, float beta, float* out, std::int64_t leading) {
  static const Tile tile = choose_tile();
  scale(beta, m, n, out, leading);
  const View left(a), right(b);
  const std::int64_t depth = std::min(k, kDepth);
  const auto rows_packed = scratch<float>(std::min(rounded_up(m, kTileRows), kRows) * depth);
  const auto columns_packed =
      scratch<float>(std::min(rounded_up(n, kTileColumns), kColumns) * depth);
  for (std::int64_t j = 0; j < n; j += kColumns) {
    const std::int64_t columns = std::min(kColumns, n - j);
    for (std::int64_t l = 0; l < k; l += kDepth) {
      const std::int64_t steps = std::min(kDepth, k - l);
      pack_columns(right, j, columns, l, steps, columns_packed.get());
      for (std::int64_t i = 0; i < m; i += kRows) {
        const std::int64_t rows = std::min(kRows, m - i);
        pack_rows(left, i, rows, l, steps, alpha, rows_packed.get());
        multiply_blocks(tile, rows_packed.get(), rows, columns_packed.get(), columns, steps,
                        out + i * leading + j, leading);
      }
    }
  }
}

}  // namespace memfathom::cpu

#include <cmath>
#include <complex>

#include "kernels/devices/element/split.h"
#include "kernels/devices/reference/reference.h"

namespace memfathom {
namespace {

using Number = std::complex<double>;
constexpr double kTwoPi = 6.283185307179586476925;

// A dense row-major array of complex numbers.
struct Grid {
  Shape shape;
  std::vector<Number> values;

  explicit Grid(const Shape& extents)
      : shape(extents), values(static_cast<std::size_t>(extents.elements())) {}
};

Grid read(const Operand& t) {
  Grid grid(t.shape);
  const element::StridedSpan lane = element::whole(t);
  for (std::size_t i = 0; i < grid.values.size(); ++i) {
    const auto value = lane.get<element::Complex>(static_cast<std::int64_t>(i));
    // fp64 input keeps its precision: Complex is two fp32.
    grid.values[i] = is_complex(t.dtype)
                         ? Number(value.re, value.im)
                         : Number(lane.get<double>(static_cast<std::int64_t>(i)), 0);
  }
  return grid;
}

// The discrete Fourier transform along one dimension, by its definition; keeps the first `outputs`
// frequencies.
Grid transform(const Grid& in, int dim, int sign, std::int64_t outputs) {
  const std::int64_t n = in.shape[dim];
  Shape shape = in.shape;
  shape[dim] = outputs;
  Grid out(shape);
  std::int64_t inner = 1;
  for (int d = dim + 1; d < shape.rank(); ++d) inner *= shape[d];
  const std::int64_t lines = in.shape.elements() / n;
  for (std::int64_t line = 0; line < lines; ++line) {
    const std::int64_t before = line / inner, after = line % inner;
    for (std::int64_t k = 0; k < outputs; ++k) {
      Number sum = 0;
      for (std::int64_t j = 0; j < n; ++j) {
        const double angle =
            sign * kTwoPi * static_cast<double>(k * j % n) / static_cast<double>(n);
        sum += in.values[static_cast<std::size_t>((before * n + j) * inner + after)] *
               std::polar(1.0, angle);
      }
      out.values[static_cast<std::size_t>((before * outputs + k) * inner + after)] = sum;
    }
  }
  return out;
}

// The last dimension from its half spectrum: the other half is the conjugate, and the imaginary
// parts of self-conjugate frequencies (0 and n / 2) are ignored.
Grid complete_spectrum(const Grid& half, std::int64_t n) {
  Shape shape = half.shape;
  const std::int64_t kept = shape[-1];
  shape[-1] = n;
  Grid full(shape);
  const std::int64_t lines = half.shape.elements() / kept;
  for (std::int64_t line = 0; line < lines; ++line) {
    const Number* from = half.values.data() + line * kept;
    Number* to = full.values.data() + line * n;
    for (std::int64_t k = 0; k <= n / 2; ++k) {
      const Number value = k < kept ? from[k] : Number(0);
      const bool real = k == 0 || 2 * k == n;
      to[k] = real ? Number(value.real()) : value;
      if (!real) to[n - k] = std::conj(value);
    }
  }
  return full;
}

void write(const Grid& grid, const Operand& t, double scale) {
  const element::StridedSpan lane = element::whole(t);
  for (std::size_t i = 0; i < grid.values.size(); ++i) {
    const Number value = grid.values[i] * scale;
    if (is_complex(t.dtype)) {
      lane.set<element::Complex>(static_cast<std::int64_t>(i), {static_cast<float>(value.real()),
                                                                static_cast<float>(value.imag())});
    } else {
      lane.set<double>(static_cast<std::int64_t>(i), value.real());
    }
  }
}

}  // namespace

void run_reference(const FftCall& call) {
  Grid grid = read(call.in);
  const int last = call.in.shape.rank() - 1, first = call.in.shape.rank() - call.rank;
  const bool backward = call.kind == FftKind::kComplexToReal || call.inverse;
  const int sign = backward ? 1 : -1;
  if (call.kind == FftKind::kRealToComplex) grid = transform(grid, last, sign, call.out.shape[-1]);
  for (int d = first; d < last; ++d) grid = transform(grid, d, sign, grid.shape[d]);
  if (call.kind == FftKind::kComplexToComplex) grid = transform(grid, last, sign, grid.shape[last]);
  if (call.kind == FftKind::kComplexToReal) {
    const std::int64_t n = call.out.shape[-1];
    grid = transform(complete_spectrum(grid, n), last, sign, n);
  }
  write(grid, call.out, call.scale);
}

}  // namespace memfathom

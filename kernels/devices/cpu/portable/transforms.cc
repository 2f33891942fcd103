// Transforms line by line, along one dimension after the other.
#include "kernels/devices/cpu/transforms.h"

#include <fmt/format.h>

#include <map>
#include <vector>

#include "kernels/devices/cpu/complex_copy.h"
#include "kernels/devices/cpu/gather.h"
#include "kernels/devices/cpu/portable/line_transform.h"
#include "kernels/devices/element/split.h"
#include "kernels/devices/reference/reference.h"

namespace memfathom::cpu {
namespace {

using Number = LineTransform::Number;
using element::Complex;

Number wide(const Complex& value) { return {value.re, value.im}; }
Complex narrow(const Number& value) {
  return {static_cast<float>(value.real()), static_cast<float>(value.imag())};
}

// In place along a dimension of a dense complex array.
void transform_along(const Shape& shape, int dim, int sign, LineTransform& transform,
                     Complex* values) {
  const std::int64_t n = shape[dim];
  std::int64_t inner = 1;
  for (int d = dim + 1; d < shape.rank(); ++d) inner *= shape[d];
  std::vector<Number> line(static_cast<std::size_t>(n));
  for (std::int64_t i = 0; i < shape.elements() / n; ++i) {
    Complex* first = values + i / inner * inner * n + i % inner;
    for (std::int64_t k = 0; k < n; ++k) line[static_cast<std::size_t>(k)] = wide(first[k * inner]);
    transform.run(line.data(), sign);
    for (std::int64_t k = 0; k < n; ++k)
      first[k * inner] = narrow(line[static_cast<std::size_t>(k)]);
  }
}

// Real lines of n elements to their n / 2 + 1 lower frequencies.
void to_half_spectrum(const float* in, std::int64_t lines, LineTransform& transform, Complex* out) {
  const std::int64_t n = transform.length(), kept = n / 2 + 1;
  std::vector<Number> line(static_cast<std::size_t>(n));
  for (std::int64_t i = 0; i < lines; ++i) {
    line.assign(in + i * n, in + (i + 1) * n);
    transform.run(line.data(), -1);
    for (std::int64_t k = 0; k < kept; ++k)
      out[i * kept + k] = narrow(line[static_cast<std::size_t>(k)]);
  }
}

// And back: the upper frequencies are the conjugates; those that are their own have no imaginary
// part.
void from_half_spectrum(const Complex* in, std::int64_t lines, LineTransform& transform,
                        float* out) {
  const std::int64_t n = transform.length(), kept = n / 2 + 1;
  std::vector<Number> line(static_cast<std::size_t>(n));
  for (std::int64_t i = 0; i < lines; ++i) {
    for (std::int64_t k = 0; k < kept; ++k) {
      const Number value = wide(in[i * kept + k]);
      const bool is_own = k == 0 || 2 * k == n;
      line[static_cast<std::size_t>(k)] = is_own ? Number(value.real()) : value;
      if (!is_own) line[static_cast<std::size_t>(n - k)] = std::conj(value);
    }
    transform.run(line.data(), 1);
    for (std::int64_t k = 0; k < n; ++k)
      out[i * n + k] = static_cast<float>(line[static_cast<std::size_t>(k)].real());
  }
}

// The spectrum that a transform to real values works on: the call's workspace if it is large
// enough, else `own`.
Complex* spectrum_of(const FftCall& call, std::unique_ptr<float[]>& own) {
  const std::int64_t bytes = floats_of(call.in) * static_cast<std::int64_t>(sizeof(float));
  if (call.workspace && call.workspace.shape.elements() >= bytes)
    return static_cast<Complex*>(call.workspace.data);
  own = scratch<float>(floats_of(call.in));
  return reinterpret_cast<Complex*>(own.get());
}

}  // namespace

struct Transforms::Plans {
  std::map<std::int64_t, LineTransform> lines;  // by length

  LineTransform& line(std::int64_t length) {
    return lines.try_emplace(length, length).first->second;
  }
};

Transforms::Transforms() : plans_(std::make_unique<Plans>()) {}
Transforms::~Transforms() = default;

Bytes Transforms::workspace(const FftQuery& query) {
  if (query.kind != FftKind::kComplexToReal) return Bytes{};
  Shape shape = query.extents;
  shape[-1] = shape[-1] / 2 + 1;
  return size_of(shape, DType::kComplex64) * query.batch;
}

void Transforms::run(const FftCall& call) {
  const bool to_real = call.kind == FftKind::kComplexToReal,
             from_real = call.kind == FftKind::kRealToComplex;
  const std::int64_t half = to_real ? call.in.shape[-1] : call.out.shape[-1];
  const std::int64_t full = to_real ? call.out.shape[-1] : call.in.shape[-1];
  // The reference computes fp64 and spectra that are cut elsewhere.
  if (call.in.dtype == DType::kFp64 || call.out.dtype == DType::kFp64 ||
      ((to_real || from_real) && half != full / 2 + 1)) {
    return run_reference(call);
  }
  if (call.in.shape.elements() == 0) return;
  const int last = call.in.shape.rank() - 1, first = call.in.shape.rank() - call.rank;
  const bool in_place = is_plain(call.out);
  const auto out_copy = in_place ? nullptr : scratch<float>(floats_of(call.out));
  float* out = in_place ? static_cast<float*>(call.out.data) : out_copy.get();

  std::unique_ptr<float[]> own;
  Complex* values = to_real ? spectrum_of(call, own) : reinterpret_cast<Complex*>(out);
  const Shape& shape = to_real ? call.in.shape : call.out.shape;
  const int sign = to_real || call.inverse ? 1 : -1;
  if (from_real) {
    std::unique_ptr<float[]> in_copy;
    const auto* in = static_cast<const float*>(call.in.data);
    if (!is_plain(call.in)) {
      in_copy = scratch<float>(floats_of(call.in));
      copy_in(call.in, in_copy.get());
      in = in_copy.get();
    }
    to_half_spectrum(in, call.in.shape.elements() / full, plans_->line(full), values);
  } else if (static_cast<const void*>(values) != call.in.data) {
    copy_in(call.in, reinterpret_cast<float*>(values));
  }
  const int complex_until = call.kind == FftKind::kComplexToComplex ? last + 1 : last;
  for (int d = first; d < complex_until; ++d)
    transform_along(shape, d, sign, plans_->line(shape[d]), values);
  if (to_real)
    from_half_spectrum(values, call.out.shape.elements() / full, plans_->line(full), out);
  copy_out(call.out, out, call.scale, in_place);
}  // NOLINT(clang-analyzer-cplusplus.NewDeleteLeaks): unique_ptr owns all of it

}  // namespace memfathom::cpu

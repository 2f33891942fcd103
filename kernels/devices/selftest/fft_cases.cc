#include <fmt/format.h>

#include "kernels/devices/selftest/harness.h"

namespace memfathom::selftest {
namespace {

Bytes work_area(const Device& device, const FftCall& call) {
  const Operand& real = call.kind == FftKind::kComplexToReal ? call.out : call.in;
  FftQuery query{call.kind, {}, 1, DType::kFp32};
  for (int d = 0; d < real.shape.rank(); ++d) {
    if (d < real.shape.rank() - call.rank)
      query.batch *= real.shape[d];
    else
      query.extents.push_back(real.shape[d]);
  }
  return device.workspaces().fft(query).bytes;
}

}  // namespace

void fft_cases(Harness& harness) {
  constexpr Tolerance kTolerance{1e-9, 5e-5, 0, 0};
  for (const Shape& extents : {Shape{6}, Shape{30}, Shape{4, 6}, Shape{3, 4, 5}}) {
    Shape real{2, 3};
    for (const std::int64_t extent : extents) real.push_back(extent);
    Shape half = real;
    half[-1] = half[-1] / 2 + 1;
    Tensors t;
    FftCall call{FftKind::kRealToComplex,
                 extents.rank(),
                 false,
                 1,
                 t.uniform(DType::kFp32, real),
                 t.filled(DType::kComplex64, half, 0),
                 {}};
    harness.compare_with_workspace(fmt::format("fft r2c {}", to_string(extents)), call, work_area,
                                   {&FftCall::out}, kTolerance);
    run_reference(call);  // the spectrum of a real signal
    FftCall back{FftKind::kComplexToReal,
                 extents.rank(),
                 true,
                 1.0 / static_cast<double>(extents.elements()),
                 call.out,
                 t.filled(DType::kFp32, real, 0),
                 {}};
    harness.compare_with_workspace(fmt::format("fft c2r {}", to_string(extents)), back, work_area,
                                   {&FftCall::out}, kTolerance);
    for (const bool inverse : {false, true}) {
      FftCall complex{FftKind::kComplexToComplex,
                      extents.rank(),
                      inverse,
                      0.5,
                      t.uniform(DType::kComplex64, real),
                      t.filled(DType::kComplex64, real, 0),
                      {}};
      harness.compare_with_workspace(
          fmt::format("fft c2c {}{}", to_string(extents), inverse ? " inverse" : ""), complex,
          work_area, {&FftCall::out}, kTolerance);
    }
  }
}

}  // namespace memfathom::selftest

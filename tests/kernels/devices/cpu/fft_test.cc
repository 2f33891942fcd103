// Fourier transforms against the reference's definition.
#include <gtest/gtest.h>

#include "kernels/devices/cpu/cpu_device.h"
#include "kernels/devices/reference/reference.h"
#include "tests/kernels/devices/reference/host_tensor.h"

namespace memfathom {
namespace {

using testing::distance;
using testing::HostTensor;
using testing::Layout;

TEST(CpuFftTest, AllKindsRanksAndLayoutsAgreeWithTheReference) {
  CpuDevice device{Bytes{1 << 20}};
  for (const FftKind kind :
       {FftKind::kRealToComplex, FftKind::kComplexToReal, FftKind::kComplexToComplex}) {
    for (const Shape& shape : {Shape{3, 8}, Shape{2, 3, 9}, Shape{2, 6, 10}, Shape{2, 4, 5, 6}}) {
      for (int rank = 1; rank < shape.rank(); ++rank) {
        for (const Layout layout : {Layout::kContiguous, Layout::kReversed, Layout::kGapped}) {
          for (const bool inverse : {false, true}) {
            if (inverse && kind != FftKind::kComplexToComplex) continue;
            Shape half = shape;
            half[-1] = half[-1] / 2 + 1;
            const bool from_real = kind == FftKind::kRealToComplex,
                       to_real = kind == FftKind::kComplexToReal;
            const HostTensor in = HostTensor::random(
                to_real ? half : shape, 1, from_real ? DType::kFp32 : DType::kComplex64, layout);
            const HostTensor before = in;
            HostTensor actual(from_real ? half : shape, to_real ? DType::kFp32 : DType::kComplex64,
                              layout),
                expected = actual;
            run_reference(FftCall{kind, rank, inverse, 0.25, in, expected, {}});
            device.run(FftCall{kind, rank, inverse, 0.25, in, actual, {}});
            EXPECT_LE(distance(actual, expected), 2e-6)
                << to_string(shape) << " rank " << rank << " kind " << int(kind);
            EXPECT_EQ(in.values(), before.values()) << "the input was overwritten";
          }
        }
      }
    }
  }
}

TEST(CpuFftTest, OnlyTheInverseRealTransformNeedsAWorkspace) {
  CpuDevice device{Bytes{1 << 20}};
  EXPECT_EQ(device.workspaces().fft({FftKind::kRealToComplex, {6, 10}, 4}).bytes.count(), 0);
  const Bytes bytes = device.workspaces().fft({FftKind::kComplexToReal, {6, 10}, 4}).bytes;
  EXPECT_EQ(bytes.count(), 4 * 6 * 6 * 8);
  const HostTensor in = HostTensor::random({4, 6, 6}, 1, DType::kComplex64);
  HostTensor workspace({bytes.count()}, DType::kUint8), out({4, 6, 10}, DType::kFp32),
      expected = out;
  run_reference(FftCall{FftKind::kComplexToReal, 2, false, 1, in, expected, {}});
  device.run(FftCall{FftKind::kComplexToReal, 2, false, 1, in, out, workspace});
  EXPECT_LE(distance(out, expected), 2e-6);
  double written = 0;
  for (const double value : workspace.values()) written += value;
  EXPECT_GT(written, 0);
}

TEST(CpuFftTest, TransformsInPlace) {
  CpuDevice device{Bytes{1 << 20}};
  HostTensor x = HostTensor::random({3, 12}, 1, DType::kComplex64),
             expected({3, 12}, DType::kComplex64);
  run_reference(FftCall{FftKind::kComplexToComplex, 1, false, 1, x, expected, {}});
  device.run(FftCall{FftKind::kComplexToComplex, 1, false, 1, x, x, {}});
  EXPECT_LE(distance(x, expected), 2e-6);
}

}  // namespace
}  // namespace memfathom

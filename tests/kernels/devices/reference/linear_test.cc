// Matrix products, reductions, Fourier transforms, dropout and optimizers of the reference.
#include <gtest/gtest.h>

#include "core/error.h"
#include "kernels/devices/reference/reference.h"
#include "tests/kernels/devices/reference/host_tensor.h"

namespace memfathom {
namespace {

using testing::distance;
using testing::HostTensor;
using testing::Layout;

TEST(GemmTest, AddsBiasAndTheOldValueWithTheirFactors) {
  HostTensor out = HostTensor::of({2, 2}, {1, 1, 1, 1});
  const HostTensor a = HostTensor::of({2, 3}, {1, 2, 3, 4, 5, 6}),
                   b = HostTensor::of({3, 2}, {1, 0, 0, 1, 1, 1});
  const HostTensor bias = HostTensor::of({2}, {100, 200});
  run_reference(GemmCall{out, a, b, bias, 2, 3});
  EXPECT_EQ(out.values(),
            (std::vector<double>{2 * 4 + 103, 2 * 5 + 203, 2 * 10 + 103, 2 * 11 + 203}));
}

TEST(GemmTest, ReadsTransposedOperandsByTheirStrides) {
  const HostTensor a = HostTensor::random({2, 3, 4}, 1), b = HostTensor::random({2, 4, 5}, 2);
  HostTensor plain({2, 3, 5}), strided({2, 3, 5}, DType::kFp64, Layout::kReversed);
  HostTensor a_strided({2, 3, 4}, DType::kFp64, Layout::kReversed),
      b_strided({2, 4, 5}, DType::kFp64, Layout::kGapped);
  for (std::int64_t i = 0; i < a.size(); ++i) a_strided.set(i, a.get(i));
  for (std::int64_t i = 0; i < b.size(); ++i) b_strided.set(i, b.get(i));
  run_reference(GemmCall{plain, a, b, {}});
  run_reference(GemmCall{strided, a_strided, b_strided, {}});
  EXPECT_EQ(plain.values(), strided.values());
}

TEST(GemmTest, MultipliesComplexMatrices) {
  HostTensor a({1, 1}, DType::kComplex64), b({1, 1}, DType::kComplex64),
      out({1, 1}, DType::kComplex64);
  a.lane().set<element::Complex>(0, {1, 2});
  b.lane().set<element::Complex>(0, {3, -1});
  run_reference(GemmCall{out, a, b, {}});
  EXPECT_EQ(out.values(), (std::vector<double>{5, 5}));
}

TEST(ReduceTest, SumsMeansAndMaximaOverAnyDimensions) {
  const HostTensor in = HostTensor::of({2, 3}, {1, 2, 3, 4, 5, 9});
  HostTensor rows({2, 1}), columns({1, 3}), all({1, 1});
  run_reference(ReduceCall{Reduction::kSum, rows, in});
  run_reference(ReduceCall{Reduction::kMean, columns, in});
  run_reference(ReduceCall{Reduction::kMax, all, in});
  EXPECT_EQ(rows.values(), (std::vector<double>{6, 18}));
  EXPECT_EQ(columns.values(), (std::vector<double>{2.5, 3.5, 6}));
  EXPECT_EQ(all.values(), (std::vector<double>{9}));
}

TEST(FftTest, AnImpulseHasAFlatSpectrum) {
  HostTensor x({5}, DType::kFp32), spectrum({3}, DType::kComplex64);
  x.set(0, 1);
  run_reference(FftCall{FftKind::kRealToComplex, 1, false, 1, x, spectrum, {}});
  EXPECT_EQ(spectrum.values(), (std::vector<double>{1, 0, 1, 0, 1, 0}));
}

TEST(FftTest, AWaveHasOneFrequency) {
  HostTensor x({8}, DType::kFp32), spectrum({5}, DType::kComplex64);
  for (std::int64_t i = 0; i < 8; ++i) x.set(i, std::sin(2 * M_PI * static_cast<double>(i) / 8));
  run_reference(FftCall{FftKind::kRealToComplex, 1, false, 1, x, spectrum, {}});
  const std::vector<double> values = spectrum.values();
  for (std::size_t i = 0; i < values.size(); ++i) EXPECT_NEAR(values[i], i == 3 ? -4 : 0, 1e-6);
}

TEST(FftTest, InverseOfForwardIsTheInputInEveryRankAndParity) {
  for (const Shape& shape :
       {Shape{2, 6}, Shape{2, 5}, Shape{2, 4, 6}, Shape{3, 5, 7}, Shape{1, 2, 3, 4, 5}}) {
    for (int rank = 1; rank < shape.rank(); ++rank) {
      Shape half = shape;
      half[-1] = half[-1] / 2 + 1;
      double count = 1;
      for (int d = 1; d <= rank; ++d) count *= static_cast<double>(shape[-d]);
      const HostTensor x = HostTensor::random(shape, 1, DType::kFp32);
      HostTensor spectrum(half, DType::kComplex64), back(shape, DType::kFp32);
      run_reference(FftCall{FftKind::kRealToComplex, rank, false, 1, x, spectrum, {}});
      run_reference(FftCall{FftKind::kComplexToReal, rank, false, 1 / count, spectrum, back, {}});
      EXPECT_LT(distance(back, x), 1e-6) << to_string(shape) << " rank " << rank;
    }
  }
}

TEST(FftTest, IgnoresTheImaginaryPartsOfTheMeanAndNyquist) {
  HostTensor with({3}, DType::kComplex64), without({3}, DType::kComplex64);
  for (std::int64_t i = 0; i < 3; ++i) {
    with.lane().set<element::Complex>(i, {1, 7});
    without.lane().set<element::Complex>(i, {1, i == 1 ? 7.0f : 0.0f});
  }
  HostTensor a({4}, DType::kFp32), b({4}, DType::kFp32);
  run_reference(FftCall{FftKind::kComplexToReal, 1, false, 1, with, a, {}});
  run_reference(FftCall{FftKind::kComplexToReal, 1, false, 1, without, b, {}});
  EXPECT_EQ(a.values(), b.values());
}

TEST(DropoutTest, ScalesKeptElementsAndRecordsTheMask) {
  const HostTensor x = HostTensor::of({1000}, std::vector<double>(1000, 3.0));
  HostTensor y({1000}), mask({1000}, DType::kBool);
  run_reference(DropoutCall{0.25, 1, 2, x, y, mask});
  int kept = 0;
  for (std::int64_t i = 0; i < 1000; ++i) {
    EXPECT_EQ(y.get(i), mask.get(i) == 1 ? 4.0 : 0.0);
    kept += mask.get(i) == 1 ? 1 : 0;
  }
  EXPECT_NEAR(kept, 750, 60);
}

TEST(NllTest, RefusesAnInvalidTargetWithItsValue) {
  const HostTensor x = HostTensor::random({2, 3}, 1),
                   target = HostTensor::of({2}, {0, 3}, DType::kInt64);
  HostTensor loss({1}), total({1});
  NllCall call;
  call.log_probabilities = x;
  call.target = target;
  call.loss = loss;
  call.total_weight = total;
  try {
    run_reference(call);
    FAIL() << "a target of 3 among 3 classes was accepted";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "target 3 is not a class; there are 3 classes");
  }
}

TEST(EmbeddingTest, RefusesAnIndexBeyondTheTableWithItsValue) {
  const HostTensor table = HostTensor::random({3, 2}, 1),
                   index = HostTensor::of({1}, {-1}, DType::kInt64);
  HostTensor out({1, 2});
  EXPECT_THROW(run_reference(EmbeddingCall{false, -1, table, index, out}), Error);
}

TEST(OptimizerTest, SgdWithMomentumStartsItsBufferWithTheFirstGradient) {
  HostTensor p = HostTensor::of({1}, {1}), buffer = HostTensor::of({1}, {55});
  const HostTensor g = HostTensor::of({1}, {2});
  OptimizerCall call;
  call.learning_rate = 0.1;
  call.momentum = 0.5;
  call.parameter = p;
  call.gradient = g;
  call.state1 = buffer;
  run_reference(call);
  EXPECT_DOUBLE_EQ(p.get(0), 0.8);
  call.step = 2;
  run_reference(call);
  EXPECT_DOUBLE_EQ(buffer.get(0), 3);
  EXPECT_DOUBLE_EQ(p.get(0), 0.5);
}

}  // namespace
}  // namespace memfathom

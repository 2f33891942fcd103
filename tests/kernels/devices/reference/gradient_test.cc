// Every call with a backward form: its gradient against finite differences of its forward form, in
// fp64.
#include <gtest/gtest.h>

#include "kernels/devices/reference/reference.h"
#include "tests/kernels/devices/reference/finite_differences.h"

namespace memfathom {
namespace {

using testing::distance;
using testing::HostTensor;
using testing::Layout;
using testing::numerical_gradient;
using testing::weighted_sum;

constexpr double kTolerance = 2e-8;

TEST(GradientTest, SoftmaxAndLogSoftmaxOverEveryDimension) {
  const Shape shape{3, 4, 5};
  for (const Softmax op : {Softmax::kSoftmax, Softmax::kLogSoftmax}) {
    for (int dim = -1; dim < 3; ++dim) {
      HostTensor x = HostTensor::random(shape, 1);
      const HostTensor g = HostTensor::random(shape, 2);
      HostTensor y(shape), dx(shape);
      const auto loss = [&] {
        run_reference(SoftmaxCall{op, false, dim, y, x, {}});
        return weighted_sum(y, g);
      };
      const HostTensor expected = numerical_gradient(x, loss);
      loss();
      run_reference(SoftmaxCall{op, true, dim, dx, g, y});
      EXPECT_LT(distance(dx, expected), kTolerance) << dim;
    }
  }
}

struct NormCase {
  const char* name;
  Norm op;
  Shape shape;
  std::int64_t groups;
  std::int64_t features, statistics;
  bool training;
};

class NormGradientTest : public ::testing::TestWithParam<NormCase> {};

TEST_P(NormGradientTest, AgreesForInputWeightAndBias) {
  const NormCase& c = GetParam();
  HostTensor x = HostTensor::random(c.shape, 1), weight = HostTensor::random({c.features}, 2);
  HostTensor bias = HostTensor::random({c.features}, 3);
  const HostTensor dy = HostTensor::random(c.shape, 4);
  HostTensor y(c.shape), mean({c.statistics}), rstd({c.statistics});
  HostTensor running_mean = HostTensor::random({c.features}, 5);
  HostTensor running_var =
      HostTensor::random({c.features}, 6, DType::kFp64, Layout::kContiguous, 0.5, 2);
  HostTensor dx(c.shape), dweight({c.features}), dbias({c.features});
  NormCall call;
  call.op = c.op;
  call.groups = c.groups;
  call.training = c.training;
  call.x = x;
  call.weight = weight;
  if (c.op != Norm::kRms) call.bias = bias;
  call.y = y;
  if (c.op != Norm::kRms) call.mean = mean;
  call.rstd = rstd;
  if (!c.training) {
    call.running_mean = running_mean;
    call.running_var = running_var;
  }
  const auto loss = [&] {
    run_reference(call);
    return weighted_sum(y, dy);
  };
  const HostTensor expected_x = numerical_gradient(x, loss),
                   expected_weight = numerical_gradient(weight, loss);
  const HostTensor expected_bias = numerical_gradient(bias, loss);
  loss();
  NormCall backward = call;
  backward.backward = true;
  backward.dy = dy;
  backward.dx = dx;
  backward.dweight = dweight;
  if (call.bias) backward.dbias = dbias;
  run_reference(backward);
  EXPECT_LT(distance(dx, expected_x), 1e-7);
  EXPECT_LT(distance(dweight, expected_weight), 1e-7);
  EXPECT_LT(distance(dbias, expected_bias), 1e-7);
}

INSTANTIATE_TEST_SUITE_P(
    All, NormGradientTest,
    ::testing::Values(NormCase{"Layer", Norm::kLayer, {3, 2, 5}, 1, 5, 6, true},
                      NormCase{"Rms", Norm::kRms, {4, 6}, 1, 6, 4, true},
                      NormCase{"Group", Norm::kGroup, {2, 6, 3, 2}, 3, 6, 6, true},
                      NormCase{"Instance", Norm::kGroup, {2, 3, 7}, 3, 3, 6, true},
                      NormCase{"Batch", Norm::kBatch, {3, 4, 2, 3}, 1, 4, 4, true},
                      NormCase{"BatchOfRows", Norm::kBatch, {6, 4}, 1, 4, 4, true},
                      NormCase{"BatchInEvaluation", Norm::kBatch, {3, 4, 5}, 1, 4, 4, false}),
    [](const auto& test) { return test.param.name; });

TEST(GradientTest, BatchNormInEvaluationNeedsNoSavedStatistics) {
  const Shape shape{2, 3, 4};
  const HostTensor x = HostTensor::random(shape, 1), dy = HostTensor::random(shape, 2),
                   mean = HostTensor::random({3}, 3);
  const HostTensor var = HostTensor::of({3}, {0.5, 1, 2});
  HostTensor dx(shape);
  NormCall call;
  call.op = Norm::kBatch;
  call.backward = true;
  call.training = false;
  call.eps = 0;
  call.x = x;
  call.dy = dy;
  call.dx = dx;
  call.running_mean = mean;
  call.running_var = var;
  run_reference(call);
  for (std::int64_t i = 0; i < dx.size(); ++i) {
    EXPECT_DOUBLE_EQ(dx.get(i), dy.get(i) / std::sqrt(var.get(i / 4 % 3)));
  }
}

TEST(GradientTest, NegativeLogLikelihoodWithIgnoredTargets) {
  HostTensor x = HostTensor::random({3, 4, 2}, 1);
  const HostTensor target = HostTensor::of({3, 2}, {0, 3, -100, 1, 2, 2}, DType::kInt64);
  HostTensor loss({1}), total({1}), dx({3, 4, 2});
  const HostTensor g = HostTensor::of({1}, {1.3});
  NllCall call;
  call.log_probabilities = x;
  call.target = target;
  call.loss = loss;
  call.total_weight = total;
  const HostTensor expected = numerical_gradient(x, [&] {
    run_reference(call);
    return 1.3 * loss.get(0);
  });
  EXPECT_EQ(total.get(0), 5);
  call.backward = true;
  call.grad_loss = g;
  call.grad_input = dx;
  run_reference(call);
  EXPECT_LT(distance(dx, expected), kTolerance);
}

TEST(GradientTest, EmbeddingAccumulatesRepeatedRowsAndSkipsPadding) {
  HostTensor table = HostTensor::random({5, 3}, 1), out({2, 2, 3}), gradient({5, 3});
  const HostTensor index = HostTensor::of({2, 2}, {4, 1, 4, 0}, DType::kInt64),
                   g = HostTensor::random({2, 2, 3}, 2);
  const auto loss = [&] {
    run_reference(EmbeddingCall{false, -1, table, index, out});
    return weighted_sum(out, g);
  };
  HostTensor expected = numerical_gradient(table, loss);
  run_reference(EmbeddingCall{true, 1, gradient, index, g});
  for (int j = 0; j < 3; ++j) expected.set(3 + j, 0);
  EXPECT_LT(distance(gradient, expected), kTolerance);
}

struct PoolCase {
  const char* name;
  Pool op;
  Shape in, out, kernel, stride, padding;
  bool count_include_pad;
};

class PoolGradientTest : public ::testing::TestWithParam<PoolCase> {};

TEST_P(PoolGradientTest, AgreesForTheInput) {
  const PoolCase& c = GetParam();
  HostTensor x = HostTensor::random(c.in, 1);
  const HostTensor dy = HostTensor::random(c.out, 2);
  HostTensor y(c.out), indices(c.out, DType::kInt64), dx(c.in);
  PoolCall call{c.op, false, c.kernel, c.stride, c.padding, c.count_include_pad, x, y, {}, {}, {}};
  if (c.op == Pool::kMax) call.indices = indices;
  const auto loss = [&] {
    run_reference(call);
    return weighted_sum(y, dy);
  };
  const HostTensor expected = numerical_gradient(x, loss);
  loss();
  PoolCall backward = call;
  backward.backward = true;
  backward.dy = dy;
  backward.dx = dx;
  run_reference(backward);
  EXPECT_LT(distance(dx, expected), kTolerance);
}

INSTANTIATE_TEST_SUITE_P(
    All, PoolGradientTest,
    ::testing::Values(
        PoolCase{"Max1d", Pool::kMax, {2, 2, 9}, {2, 2, 4}, {3}, {2}, {0}, true},
        PoolCase{"Max2dOverlapping",
                 Pool::kMax,
                 {1, 2, 7, 6},
                 {1, 2, 4, 3},
                 {3, 3},
                 {2, 2},
                 {1, 1},
                 true},
        PoolCase{"Max3d",
                 Pool::kMax,
                 {1, 1, 4, 4, 4},
                 {1, 1, 2, 2, 2},
                 {2, 2, 2},
                 {2, 2, 2},
                 {0, 0, 0},
                 true},
        PoolCase{
            "Average2d", Pool::kAverage, {1, 2, 6, 5}, {1, 2, 4, 3}, {3, 3}, {2, 2}, {1, 1}, true},
        PoolCase{"AverageWithoutPadding",
                 Pool::kAverage,
                 {1, 2, 6, 5},
                 {1, 2, 3, 3},
                 {3, 3},
                 {2, 2},
                 {1, 1},
                 false},
        PoolCase{"Adaptive", Pool::kAdaptiveAverage, {2, 1, 7, 5}, {2, 1, 3, 2}, {}, {}, {}, true},
        PoolCase{"AdaptiveUpwards",
                 Pool::kAdaptiveAverage,
                 {1, 1, 3, 2},
                 {1, 1, 5, 4},
                 {},
                 {},
                 {},
                 true},
        PoolCase{"Global", Pool::kAdaptiveAverage, {2, 3, 4, 4}, {2, 3, 1, 1}, {}, {}, {}, true}),
    [](const auto& test) { return test.param.name; });

TEST(GradientTest, UpsamplingUpAndDownByOddFactors) {
  const std::vector<std::pair<Shape, Shape>> sizes{
      {{1, 2, 3, 4}, {1, 2, 6, 8}}, {{2, 1, 5, 4}, {2, 1, 7, 9}},
      {{1, 1, 6, 9}, {1, 1, 4, 3}}, {{1, 1, 1, 3}, {1, 1, 2, 3}},
      {{2, 2, 5}, {2, 2, 11}},      {{1, 1, 2, 3, 2}, {1, 1, 4, 6, 5}}};
  for (const Upsample op : {Upsample::kNearest, Upsample::kBilinear}) {
    for (const auto& [small, large] : sizes) {
      HostTensor x = HostTensor::random(small, 1), y(large), dx(small);
      const HostTensor dy = HostTensor::random(large, 2);
      const HostTensor expected = numerical_gradient(x, [&] {
        run_reference(UpsampleCall{op, false, x, y});
        return weighted_sum(y, dy);
      });
      run_reference(UpsampleCall{op, true, dy, dx});
      // The weights are fp32 by definition, and multiplied in a different order on the way back.
      EXPECT_LT(distance(dx, expected), 1e-6) << to_string(small) << " to " << to_string(large);
    }
  }
}

}  // namespace
}  // namespace memfathom

// Element-wise operations: derivatives against finite differences, behaviour at special values and
// across types.
#include <gtest/gtest.h>

#include <limits>

#include "kernels/devices/reference/reference.h"
#include "tests/kernels/devices/reference/finite_differences.h"

namespace memfathom {
namespace {

using testing::distance;
using testing::HostTensor;
using testing::Layout;
using testing::numerical_gradient;
using testing::weighted_sum;

void run(Elementwise op, const Operand& out, const Operand& a, const Operand& b = {},
         const Operand& c = {}, std::array<double, 4> scalars = {}) {
  run_reference(ElementwiseCall{op, out, a, b, c, scalars});
}

double at(Elementwise op, double a, double b = 0, double c = 0,
          std::array<double, 4> scalars = {}) {
  HostTensor out({1});
  run(op, out, HostTensor::of({1}, {a}), HostTensor::of({1}, {b}), HostTensor::of({1}, {c}),
      scalars);
  return out.get(0);
}

enum class Saves { kInput, kOutput };

struct Activation {
  const char* name;
  Elementwise forward, backward;
  Saves saves;
  std::array<double, 4> scalars;
};

void PrintTo(const Activation& activation, std::ostream* stream) { *stream << activation.name; }

class ActivationTest : public ::testing::TestWithParam<Activation> {};

TEST_P(ActivationTest, DerivativeAgreesWithFiniteDifferences) {
  const Activation& f = GetParam();
  const Shape shape{5, 11};
  HostTensor x = HostTensor::random(shape, 1, DType::kFp64, Layout::kContiguous, -4, 7.5);
  if (f.forward == Elementwise::kRsqrt || f.forward == Elementwise::kPow) {
    x = HostTensor::random(shape, 1, DType::kFp64, Layout::kContiguous, 0.2, 3);
  }
  const HostTensor g = HostTensor::random(shape, 2);
  HostTensor y(shape), dx(shape);
  const auto loss = [&] {
    run(f.forward, y, x, {}, {}, f.scalars);
    return weighted_sum(y, g);
  };
  const HostTensor expected = numerical_gradient(x, loss);
  loss();
  run(f.backward, dx, g, f.saves == Saves::kInput ? x : y, {}, f.scalars);
  EXPECT_LT(distance(dx, expected), 1e-7);
}

INSTANTIATE_TEST_SUITE_P(
    All, ActivationTest,
    ::testing::Values(
        Activation{"Tanh", Elementwise::kTanh, Elementwise::kTanhBackward, Saves::kOutput, {}},
        Activation{
            "Sigmoid", Elementwise::kSigmoid, Elementwise::kSigmoidBackward, Saves::kOutput, {}},
        Activation{"Relu", Elementwise::kRelu, Elementwise::kThresholdBackward, Saves::kOutput, {}},
        Activation{"Gelu", Elementwise::kGelu, Elementwise::kGeluBackward, Saves::kInput, {}},
        Activation{
            "GeluTanh", Elementwise::kGeluTanh, Elementwise::kGeluTanhBackward, Saves::kInput, {}},
        Activation{"Silu", Elementwise::kSilu, Elementwise::kSiluBackward, Saves::kInput, {}},
        Activation{"Mish", Elementwise::kMish, Elementwise::kMishBackward, Saves::kInput, {}},
        Activation{"LeakyRelu",
                   Elementwise::kLeakyRelu,
                   Elementwise::kLeakyReluBackward,
                   Saves::kInput,
                   {0.1}},
        Activation{"Elu", Elementwise::kElu, Elementwise::kEluBackward, Saves::kInput, {1.3, 1}},
        Activation{"EluByItsResult",
                   Elementwise::kElu,
                   Elementwise::kEluBackward,
                   Saves::kOutput,
                   {1.3, 1.1, 1}},
        Activation{"Selu",
                   Elementwise::kElu,
                   Elementwise::kEluBackward,
                   Saves::kInput,
                   {1.6732632423543772, 1.0507009873554805}},
        Activation{"Softplus",
                   Elementwise::kSoftplus,
                   Elementwise::kSoftplusBackward,
                   Saves::kInput,
                   {2, 20}},
        Activation{
            "Relu6", Elementwise::kHardtanh, Elementwise::kHardtanhBackward, Saves::kInput, {0, 6}},
        Activation{"Hardswish",
                   Elementwise::kHardswish,
                   Elementwise::kHardswishBackward,
                   Saves::kInput,
                   {}},
        Activation{"Rsqrt", Elementwise::kRsqrt, Elementwise::kRsqrtBackward, Saves::kOutput, {}},
        Activation{"Pow", Elementwise::kPow, Elementwise::kPowBackward, Saves::kInput, {2.5}},
        Activation{"Square", Elementwise::kPow, Elementwise::kPowBackward, Saves::kInput, {2}}),
    [](const auto& test) { return test.param.name; });

struct PointwiseLoss {
  const char* name;
  Elementwise forward, backward;
  bool has_beta;
};

void PrintTo(const PointwiseLoss& loss, std::ostream* stream) { *stream << loss.name; }

class PointwiseLossTest : public ::testing::TestWithParam<PointwiseLoss> {};

// The loss is the mean over the elements, so the backward function gets the factor 1 / n.
TEST_P(PointwiseLossTest, DerivativeAgreesWithFiniteDifferences) {
  const PointwiseLoss& f = GetParam();
  constexpr double kBeta = 0.3;
  const Shape shape{7, 5};
  HostTensor x = HostTensor::random(shape, 3, DType::kFp64, Layout::kContiguous, 0.05, 0.95);
  const HostTensor target = HostTensor::random(shape, 4, DType::kFp64, Layout::kContiguous, 0, 1);
  const HostTensor g = HostTensor::of({1, 1}, {1.7});
  HostTensor y(shape), dx(shape);
  const auto loss = [&] {
    run(f.forward, y, x, target, {}, {kBeta});
    double sum = 0;
    for (std::int64_t i = 0; i < y.size(); ++i) sum += y.get(i);
    return 1.7 * sum / 35;
  };
  const HostTensor expected = numerical_gradient(x, loss);
  run(f.backward, dx, g, x, target, {1.0 / 35, kBeta});
  EXPECT_LT(distance(dx, expected), 1e-7);
}

INSTANTIATE_TEST_SUITE_P(
    All, PointwiseLossTest,
    ::testing::Values(
        PointwiseLoss{"Mse", Elementwise::kSquaredDifference, Elementwise::kMseBackward, false},
        PointwiseLoss{"L1", Elementwise::kAbsDifference, Elementwise::kL1Backward, false},
        PointwiseLoss{"SmoothL1", Elementwise::kSmoothL1, Elementwise::kSmoothL1Backward, true},
        PointwiseLoss{"BceWithLogits", Elementwise::kBceWithLogits,
                      Elementwise::kBceWithLogitsBackward, false},
        PointwiseLoss{"Bce", Elementwise::kBce, Elementwise::kBceBackward, false}),
    [](const auto& test) { return test.param.name; });

TEST(ElementwiseTest, PreluPassesGradientsToInputAndWeight) {
  const Shape shape{4, 6};
  HostTensor x = HostTensor::random(shape, 5), weight = HostTensor::random({6}, 6);
  const HostTensor g = HostTensor::random(shape, 7);
  HostTensor y(shape), dx(shape), elements(shape), dweight({1, 6});
  const auto loss = [&] {
    run(Elementwise::kPrelu, y, x, weight);
    return weighted_sum(y, g);
  };
  const HostTensor expected_x = numerical_gradient(x, loss),
                   expected_weight = numerical_gradient(weight, loss);
  run(Elementwise::kPreluBackwardInput, dx, g, x, weight);
  run(Elementwise::kPreluBackwardWeight, elements, g, x);
  run_reference(ReduceCall{Reduction::kSum, dweight, elements});
  EXPECT_LT(distance(dx, expected_x), 1e-8);
  EXPECT_LT(distance(dweight, expected_weight), 1e-8);
}

TEST(ElementwiseTest, SpecialValuesEqualPyTorch) {
  constexpr double kInf = std::numeric_limits<double>::infinity(),
                   kNan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(at(Elementwise::kSigmoid, -kInf), 0);
  EXPECT_EQ(at(Elementwise::kSigmoid, kInf), 1);
  EXPECT_EQ(at(Elementwise::kRelu, -kInf), 0);
  EXPECT_TRUE(std::isnan(at(Elementwise::kRelu, kNan)));
  EXPECT_TRUE(std::isnan(at(Elementwise::kHardtanh, kNan, 0, 0, {0, 6})));
  EXPECT_EQ(at(Elementwise::kHardtanh, kInf, 0, 0, {0, 6}), 6);
  EXPECT_EQ(at(Elementwise::kGelu, 40), 40);
  EXPECT_EQ(at(Elementwise::kGelu, -40), 0);
  EXPECT_EQ(at(Elementwise::kSoftplus, 1000, 0, 0, {1, 20}), 1000);
  EXPECT_EQ(at(Elementwise::kSoftplus, -1000, 0, 0, {1, 20}), 0);
  EXPECT_EQ(at(Elementwise::kMish, 800), 800);
  EXPECT_EQ(at(Elementwise::kHardswish, -3), 0);
  EXPECT_EQ(at(Elementwise::kHardswish, 3), 3);
  EXPECT_EQ(at(Elementwise::kBceWithLogits, 1000, 1), 0);
  EXPECT_EQ(at(Elementwise::kBceWithLogits, -1000, 1), 1000);
  EXPECT_EQ(at(Elementwise::kBce, 0, 1), 100);
  EXPECT_EQ(at(Elementwise::kBce, 1, 0), 100);
  EXPECT_EQ(at(Elementwise::kPowBackward, 1, 0, 0, {0}), 0);
  EXPECT_EQ(at(Elementwise::kL1Backward, 1, 2, 2, {1}), 0);
  EXPECT_EQ(at(Elementwise::kWhere, 1, 5, 6), 5);
  EXPECT_EQ(at(Elementwise::kWhere, 0, 5, 6), 6);
}

TEST(ElementwiseTest, CopyConvertsBetweenAllTypes) {
  const std::vector<double> values{-2, 0, 1, 3};
  for (const DType from : {DType::kFp64, DType::kFp32, DType::kFp16, DType::kBf16, DType::kInt64,
                           DType::kInt32, DType::kInt8}) {
    for (const DType to : {DType::kFp64, DType::kFp32, DType::kFp16, DType::kBf16, DType::kInt64,
                           DType::kInt32, DType::kInt8}) {
      HostTensor out({4}, to);
      run(Elementwise::kCopy, out, HostTensor::of({4}, values, from));
      EXPECT_EQ(out.values(), values) << to_string(from) << " to " << to_string(to);
    }
  }
}

TEST(ElementwiseTest, CopyKeepsEveryBitOfALargeInteger) {
  HostTensor in({1}, DType::kInt64), out({1}, DType::kInt64);
  in.lane().set<std::int64_t>(0, (1ll << 62) + 1);
  run(Elementwise::kCopy, out, in);
  EXPECT_EQ(out.lane().get<std::int64_t>(0), (1ll << 62) + 1);
}

TEST(ElementwiseTest, ComplexCopyToRealKeepsTheRealPart) {
  const HostTensor in = HostTensor::random({6}, 8, DType::kComplex64);
  HostTensor out({6}, DType::kFp32);
  run(Elementwise::kCopy, out, in);
  for (std::int64_t i = 0; i < 6; ++i) EXPECT_EQ(out.get(i), in.get(i));
}

TEST(ElementwiseTest, MulConjugateMultipliesByTheConjugate) {
  HostTensor a({1}, DType::kComplex64), b({1}, DType::kComplex64), out({1}, DType::kComplex64);
  a.lane().set<element::Complex>(0, {1, 2});
  b.lane().set<element::Complex>(0, {3, 4});
  run(Elementwise::kMulConjugate, out, a, b);
  EXPECT_EQ(out.values(), (std::vector<double>{11, 2}));
}

TEST(ElementwiseTest, InputsOfFewerDimensionsAreBroadcast) {
  HostTensor out({2, 3});
  run(Elementwise::kAdd, out, HostTensor::of({2, 1}, {10, 20}), HostTensor::of({3}, {1, 2, 3}), {},
      {1});
  EXPECT_EQ(out.values(), (std::vector<double>{11, 12, 13, 21, 22, 23}));
}

}  // namespace
}  // namespace memfathom

// Convolutions: a case small enough to work by hand, and gradients of all kinds against finite
// differences.
#include <gtest/gtest.h>

#include "kernels/devices/reference/reference.h"
#include "tests/kernels/devices/reference/finite_differences.h"

namespace memfathom {
namespace {

using testing::distance;
using testing::HostTensor;
using testing::numerical_gradient;
using testing::weighted_sum;

TEST(ConvolutionTest, SlidesTheFilterWithoutFlippingIt) {
  const HostTensor x = HostTensor::of({1, 1, 4}, {1, 2, 3, 4}),
                   w = HostTensor::of({1, 1, 2}, {10, 1});
  HostTensor y({1, 1, 3});
  ConvolutionCall call;
  call.query = {ConvolutionKind::kForward, {1, 1, 4}, {1, 1, 2}, {1}, {0}, {}, {1}};
  call.x = x;
  call.w = w;
  call.y = y;
  run_reference(call);
  EXPECT_EQ(y.values(), (std::vector<double>{12, 23, 34}));
}

TEST(ConvolutionTest, TransposedSpreadsEachInputOverTheFilter) {
  const HostTensor x = HostTensor::of({1, 1, 2}, {1, 2}),
                   w = HostTensor::of({1, 1, 3}, {1, 10, 100});
  HostTensor y({1, 1, 5});
  ConvolutionCall call;
  call.query = {ConvolutionKind::kForward, {1, 1, 2}, {1, 1, 3}, {2}, {0}, {}, {1}, 1, true};
  call.x = x;
  call.w = w;
  call.y = y;
  run_reference(call);
  EXPECT_EQ(y.values(), (std::vector<double>{1, 10, 102, 20, 200}));
}

struct Case {
  const char* name;
  Shape x, w, y, stride, padding, dilation;
  std::int64_t groups;
  bool transposed;
  Shape output_padding;
};

class ConvolutionGradientTest : public ::testing::TestWithParam<Case> {};

TEST_P(ConvolutionGradientTest, AgreesForInputAndWeight) {
  const Case& c = GetParam();
  HostTensor x = HostTensor::random(c.x, 1), w = HostTensor::random(c.w, 2);
  const HostTensor dy = HostTensor::random(c.y, 3);
  HostTensor y(c.y), dx(c.x), dw(c.w);
  ConvolutionCall call;
  call.query = {ConvolutionKind::kForward, c.x,        c.w,      c.stride,    c.padding,
                c.output_padding,          c.dilation, c.groups, c.transposed};
  call.x = x;
  call.w = w;
  call.y = y;
  call.dy = dy;
  call.dx = dx;
  call.dw = dw;
  const auto loss = [&] {
    run_reference(call);
    return weighted_sum(y, dy);
  };
  // The convolution is linear in each operand: a large step loses nothing.
  const HostTensor expected_x = numerical_gradient(x, loss, 0.5),
                   expected_w = numerical_gradient(w, loss, 0.5);
  ConvolutionCall backward = call;
  backward.query.kind = ConvolutionKind::kDataGradient;
  run_reference(backward);
  EXPECT_LT(distance(dx, expected_x), 1e-12);
  backward.query.kind = ConvolutionKind::kWeightGradient;
  run_reference(backward);
  EXPECT_LT(distance(dw, expected_w), 1e-12);
}

INSTANTIATE_TEST_SUITE_P(
    All, ConvolutionGradientTest,
    ::testing::Values(
        Case{"Plain1d", {2, 3, 7}, {4, 3, 3}, {2, 4, 5}, {1}, {0}, {1}, 1, false, {}},
        Case{"Strided2d",
             {1, 2, 7, 6},
             {3, 2, 3, 3},
             {1, 3, 4, 3},
             {2, 2},
             {1, 1},
             {1, 1},
             1,
             false,
             {}},
        Case{"Grouped2d",
             {2, 4, 4, 4},
             {6, 2, 3, 3},
             {2, 6, 4, 4},
             {1, 1},
             {1, 1},
             {1, 1},
             2,
             false,
             {}},
        Case{"Depthwise",
             {1, 3, 5, 5},
             {3, 1, 3, 3},
             {1, 3, 3, 3},
             {1, 1},
             {0, 0},
             {1, 1},
             3,
             false,
             {}},
        Case{"Dilated", {1, 2, 9}, {2, 2, 3}, {1, 2, 5}, {1}, {0}, {2}, 1, false, {}},
        Case{"Plain3d",
             {1, 2, 3, 4, 3},
             {2, 2, 2, 2, 2},
             {1, 2, 2, 3, 2},
             {1, 1, 1},
             {0, 0, 0},
             {1, 1, 1},
             1,
             false,
             {}},
        Case{"Transposed2d",
             {1, 4, 3, 3},
             {4, 3, 2, 2},
             {1, 3, 6, 6},
             {2, 2},
             {0, 0},
             {1, 1},
             1,
             true,
             {}},
        Case{"TransposedGrouped", {1, 4, 3}, {4, 1, 3}, {1, 2, 6}, {2}, {1}, {1}, 2, true, {1}}),
    [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace memfathom

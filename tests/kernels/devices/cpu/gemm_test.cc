// Matrix products of the cpu device against the reference.
#include <gtest/gtest.h>

#include "kernels/devices/cpu/cpu_device.h"
#include "kernels/devices/reference/reference.h"
#include "tests/kernels/devices/reference/host_tensor.h"

namespace memfathom {
namespace {

using testing::distance;
using testing::HostTensor;
using testing::Layout;

struct Case {
  const char* name;
  Shape a, b, out;
  DType dtype;
  Layout a_layout, b_layout, out_layout;
  bool biased;
  double alpha, beta;
};

class CpuGemmTest : public ::testing::TestWithParam<Case> {};

TEST_P(CpuGemmTest, AgreesWithTheReference) {
  const Case& c = GetParam();
  const HostTensor a = HostTensor::random(c.a, 1, c.dtype, c.a_layout),
                   b = HostTensor::random(c.b, 2, c.dtype, c.b_layout);
  const HostTensor bias = HostTensor::random({c.out[-1]}, 3, c.dtype);
  HostTensor actual = HostTensor::random(c.out, 4, c.dtype, c.out_layout), expected = actual;
  CpuDevice device{Bytes{1 << 20}};
  run_reference(GemmCall{expected, a, b, c.biased ? bias.operand() : Operand{}, c.alpha, c.beta});
  device.run(GemmCall{actual, a, b, c.biased ? bias.operand() : Operand{}, c.alpha, c.beta});
  const double near = c.dtype == DType::kFp16 ? 2e-3 : c.dtype == DType::kBf16 ? 1.6e-2 : 1e-5;
  EXPECT_LE(distance(actual, expected), near);
}

constexpr auto kPlain = Layout::kContiguous, kTurned = Layout::kReversed, kGaps = Layout::kGapped;
constexpr auto kF32 = DType::kFp32;

INSTANTIATE_TEST_SUITE_P(
    All, CpuGemmTest,
    ::testing::Values(
        Case{"Plain", {5, 7}, {7, 9}, {5, 9}, kF32, kPlain, kPlain, kPlain, false, 1, 0},
        Case{"TransposedLeft", {5, 7}, {7, 9}, {5, 9}, kF32, kTurned, kPlain, kPlain, false, 1, 0},
        Case{"TransposedRight", {5, 7}, {7, 9}, {5, 9}, kF32, kPlain, kTurned, kPlain, true, 1, 0},
        Case{"TransposedResult",
             {5, 7},
             {7, 9},
             {5, 9},
             kF32,
             kPlain,
             kTurned,
             kTurned,
             true,
             0.5,
             2},
        Case{"AllTransposed", {5, 7}, {7, 9}, {5, 9}, kF32, kTurned, kTurned, kTurned, false, 1, 1},
        Case{"Gapped", {5, 7}, {7, 9}, {5, 9}, kF32, kGaps, kGaps, kGaps, true, 1, 0.25},
        Case{"Row", {1, 300}, {300, 4}, {1, 4}, kF32, kPlain, kPlain, kPlain, true, 1, 0},
        Case{"Column", {6, 8}, {8, 1}, {6, 1}, kF32, kTurned, kPlain, kPlain, true, 1, 0},
        Case{"Inner1", {6, 1}, {1, 5}, {6, 5}, kF32, kPlain, kPlain, kPlain, false, 3, 0},
        Case{
            "Batched", {3, 4, 6}, {3, 6, 5}, {3, 4, 5}, kF32, kPlain, kTurned, kPlain, false, 1, 0},
        Case{"BatchedBias",
             {3, 4, 6},
             {3, 6, 5},
             {3, 4, 5},
             kF32,
             kPlain,
             kPlain,
             kGaps,
             true,
             2,
             1},
        Case{"Large", {130, 257}, {257, 70}, {130, 70}, kF32, kPlain, kTurned, kPlain, true, 1, 0},
        Case{"Fp16", {9, 20}, {20, 11}, {9, 11}, DType::kFp16, kPlain, kTurned, kPlain, true, 1, 0},
        Case{"Bf16", {9, 20}, {20, 11}, {9, 11}, DType::kBf16, kTurned, kPlain, kPlain, true, 1, 1},
        Case{"Complex",
             {4, 3, 6},
             {4, 6, 5},
             {4, 3, 5},
             DType::kComplex64,
             kPlain,
             kPlain,
             kPlain,
             false,
             1,
             0},
        Case{"ComplexTransposed",
             {4, 3, 6},
             {4, 6, 5},
             {4, 3, 5},
             DType::kComplex64,
             kTurned,
             kTurned,
             kTurned,
             false,
             1,
             1},
        Case{"Fp64", {5, 7}, {7, 9}, {5, 9}, DType::kFp64, kPlain, kPlain, kPlain, true, 1, 0}),
    [](const auto& test) { return test.param.name; });

TEST(EmptyGemmTest, AnEmptySumIsTheBias) {
  const HostTensor bias = HostTensor::random({3}, 1, kF32);
  HostTensor a({2, 0}, kF32), b({0, 3}, kF32), out({2, 3}, kF32);
  CpuDevice device{Bytes{1 << 20}};
  device.run(GemmCall{out, a, b, bias});
  for (std::int64_t i = 0; i < 6; ++i) EXPECT_EQ(out.get(i), bias.get(i % 3));
}

}  // namespace
}  // namespace memfathom

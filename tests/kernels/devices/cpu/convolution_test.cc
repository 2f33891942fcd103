// Convolutions against the reference, and what they ask for as workspace.
#include <gtest/gtest.h>

#include "core/error.h"
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
  Shape x, w, y, stride, padding, dilation;
  std::int64_t groups;
  bool transposed;
  Shape output_padding;
};

void PrintTo(const Case& c, std::ostream* stream) { *stream << c.name; }

struct Form {
  const char* name;
  DType dtype;
  bool channels_last;
  Layout layout;
};

void PrintTo(const Form& f, std::ostream* stream) { *stream << f.name; }

class CpuConvolutionTest : public ::testing::TestWithParam<std::tuple<Case, Form>> {};

TEST_P(CpuConvolutionTest, AllThreeKindsAgreeWithTheReference) {
  const auto& [c, form] = GetParam();
  CpuDevice device{Bytes{1 << 20}};
  const HostTensor x = HostTensor::random(c.x, 1, form.dtype, form.layout),
                   w = HostTensor::random(c.w, 2, form.dtype, form.layout);
  const HostTensor dy = HostTensor::random(c.y, 3, form.dtype, form.layout);
  for (const ConvolutionKind kind : {ConvolutionKind::kForward, ConvolutionKind::kDataGradient,
                                     ConvolutionKind::kWeightGradient}) {
    HostTensor y(c.y, form.dtype, form.layout), dx(c.x, form.dtype, form.layout),
        dw(c.w, form.dtype, form.layout);
    HostTensor expected_y = y, expected_dx = dx, expected_dw = dw;
    ConvolutionCall call;
    call.query = {
        kind,       c.x,      c.w,          c.stride,           c.padding, c.output_padding,
        c.dilation, c.groups, c.transposed, form.channels_last, false,     form.dtype};
    call.x = x;
    call.w = w;
    call.dy = dy;
    call.y = expected_y;
    call.dx = expected_dx;
    call.dw = expected_dw;
    run_reference(call);
    call.y = y;
    call.dx = dx;
    call.dw = dw;
    const WorkspaceSize answer = device.workspaces().convolution(call.query);
    EXPECT_EQ(answer.source, Source::kExact);
    HostTensor workspace({answer.bytes.count()}, DType::kUint8);
    call.workspace = workspace;
    device.run(call);
    const double near = form.dtype == DType::kFp16   ? 2e-3
                        : form.dtype == DType::kBf16 ? 1.6e-2
                                                     : 1e-5;
    EXPECT_LE(distance(y, expected_y), near);
    EXPECT_LE(distance(dx, expected_dx), near);
    EXPECT_LE(distance(dw, expected_dw), near);
    // Without a workspace the device uses memory of its own, and the result is the same.
    const std::vector<double> with_workspace[] = {y.values(), dx.values(), dw.values()};
    call.workspace = {};
    device.run(call);
    EXPECT_EQ(with_workspace[0], y.values());
    EXPECT_EQ(with_workspace[1], dx.values());
    EXPECT_EQ(with_workspace[2], dw.values());
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, CpuConvolutionTest,
    ::testing::Combine(
        ::testing::Values(
            Case{"Plain1d", {2, 3, 17}, {8, 3, 3}, {2, 8, 15}, {1}, {0}, {1}, 1, false, {}},
            Case{"Same2d",
                 {2, 16, 8, 8},
                 {16, 16, 3, 3},
                 {2, 16, 8, 8},
                 {1, 1},
                 {1, 1},
                 {1, 1},
                 1,
                 false,
                 {}},
            Case{"Stem",
                 {2, 3, 14, 14},
                 {8, 3, 7, 7},
                 {2, 8, 7, 7},
                 {2, 2},
                 {3, 3},
                 {1, 1},
                 1,
                 false,
                 {}},
            Case{"Pointwise",
                 {2, 12, 5, 6},
                 {20, 12, 1, 1},
                 {2, 20, 5, 6},
                 {1, 1},
                 {0, 0},
                 {1, 1},
                 1,
                 false,
                 {}},
            Case{"StridedOdd",
                 {1, 5, 9, 7},
                 {7, 5, 3, 3},
                 {1, 7, 4, 3},
                 {2, 2},
                 {0, 0},
                 {1, 1},
                 1,
                 false,
                 {}},
            Case{"StridedWithRest",
                 {1, 4, 8, 8},
                 {4, 4, 3, 3},
                 {1, 4, 4, 4},
                 {2, 2},
                 {1, 1},
                 {1, 1},
                 1,
                 false,
                 {}},
            Case{"Grouped",
                 {2, 8, 6, 6},
                 {12, 4, 3, 3},
                 {2, 12, 6, 6},
                 {1, 1},
                 {1, 1},
                 {1, 1},
                 2,
                 false,
                 {}},
            Case{"Depthwise",
                 {2, 16, 7, 7},
                 {16, 1, 3, 3},
                 {2, 16, 7, 7},
                 {1, 1},
                 {1, 1},
                 {1, 1},
                 16,
                 false,
                 {}},
            Case{"Dilated",
                 {1, 4, 12, 12},
                 {6, 4, 3, 3},
                 {1, 6, 8, 8},
                 {1, 1},
                 {0, 0},
                 {2, 2},
                 1,
                 false,
                 {}},
            Case{"Rectangular",
                 {1, 3, 6, 9},
                 {5, 3, 1, 3},
                 {1, 5, 6, 4},
                 {1, 2},
                 {0, 0},
                 {1, 1},
                 1,
                 false,
                 {}},
            Case{"Plain3d",
                 {1, 4, 5, 6, 5},
                 {6, 4, 3, 3, 3},
                 {1, 6, 5, 6, 5},
                 {1, 1, 1},
                 {1, 1, 1},
                 {1, 1, 1},
                 1,
                 false,
                 {}},
            Case{"Transposed",
                 {2, 6, 5, 5},
                 {6, 4, 2, 2},
                 {2, 4, 10, 10},
                 {2, 2},
                 {0, 0},
                 {1, 1},
                 1,
                 true,
                 {}},
            Case{"TransposedPadded",
                 {1, 4, 5, 4},
                 {4, 3, 4, 4},
                 {1, 3, 10, 8},
                 {2, 2},
                 {1, 1},
                 {1, 1},
                 1,
                 true,
                 {}},
            Case{"TransposedOutputPadding",
                 {1, 4, 5},
                 {4, 6, 3},
                 {1, 6, 10},
                 {2},
                 {1},
                 {1},
                 1,
                 true,
                 {1}},
            Case{"TransposedGrouped",
                 {1, 6, 4, 4},
                 {6, 2, 3, 3},
                 {1, 6, 6, 6},
                 {1, 1},
                 {0, 0},
                 {1, 1},
                 3,
                 true,
                 {}},
            Case{"Transposed1d", {2, 3, 6}, {3, 5, 4}, {2, 5, 14}, {2}, {0}, {1}, 1, true, {}}),
        ::testing::Values(Form{"Fp32", DType::kFp32, false, Layout::kContiguous},
                          Form{"Fp32ChannelsLast", DType::kFp32, true, Layout::kChannelsLast},
                          Form{"Fp32Gapped", DType::kFp32, false, Layout::kGapped},
                          Form{"Fp16", DType::kFp16, false, Layout::kContiguous},
                          Form{"Bf16ChannelsLast", DType::kBf16, true, Layout::kChannelsLast})),
    [](const auto& test) {
      return std::string(std::get<0>(test.param).name) + std::get<1>(test.param).name;
    });

TEST(CpuConvolutionWorkspaceTest, A16BitConvolutionNeedsSpaceForFp32Copies) {
  CpuDevice device{Bytes{1 << 20}};
  ConvolutionQuery query{
      ConvolutionKind::kForward, {2, 16, 8, 8}, {16, 16, 3, 3}, {1, 1}, {1, 1}, {}, {1, 1}};
  const Bytes plain = device.workspaces().convolution(query).bytes;
  query.dtype = DType::kBf16;
  const Bytes copies =
      size_of({2, 16, 8, 8}, DType::kFp32) * 2 + size_of({16, 16, 3, 3}, DType::kFp32);
  EXPECT_EQ(device.workspaces().convolution(query).bytes, plain + copies);
}

TEST(CpuConvolutionWorkspaceTest, RefusesAnImpossibleConvolutionWithItsText) {
  const CpuDevice device{Bytes{1 << 20}};
  const ConvolutionQuery query{
      ConvolutionKind::kForward, {1, 3, 2, 2}, {4, 5, 3, 3}, {1, 1}, {0, 0}, {}, {1, 1}};
  try {
    device.workspaces().convolution(query);
    FAIL() << "three channels under a filter of five were accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kEnvironment);
    EXPECT_NE(std::string(error.what()).find(to_string(query)), std::string::npos);
  }
}

}  // namespace
}  // namespace memfathom

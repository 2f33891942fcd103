#include "core/pytorch_convolution.h"

#include <gtest/gtest.h>

#include "core/error.h"

namespace memfathom {
namespace {

ConvolutionQuery convolution(Shape input, Shape weight, std::int64_t stride, std::int64_t groups,
                             DType dtype) {
  ConvolutionQuery query;
  query.input = input;
  query.weight = weight;
  for (int i = 2; i < input.rank(); ++i) {
    query.stride.push_back(stride);
    query.padding.push_back(weight[i] / 2);
    query.dilation.push_back(1);
  }
  query.groups = groups;
  query.dtype = dtype;
  return query;
}

ConvolutionQuery depthwise(std::int64_t batch, std::int64_t channels, std::int64_t side,
                           std::int64_t kernel, std::int64_t stride, DType dtype) {
  return convolution({batch, channels, side, side}, {channels, 1, kernel, kernel}, stride, channels,
                     dtype);
}

TEST(PytorchConvolutionTest, OrdinaryAndGroupedConvolutionsGoToCudnn) {
  EXPECT_TRUE(
      pytorch_uses_cudnn(convolution({8, 64, 32, 32}, {128, 64, 3, 3}, 1, 1, DType::kFp32)));
  EXPECT_TRUE(
      pytorch_uses_cudnn(convolution({8, 64, 32, 32}, {128, 16, 3, 3}, 1, 4, DType::kFp32)));
  EXPECT_TRUE(pytorch_uses_cudnn(convolution({8, 64, 128}, {128, 64, 3}, 1, 1, DType::kBf16)));
  EXPECT_TRUE(pytorch_uses_cudnn(convolution({8, 1, 32, 32}, {16, 1, 3, 3}, 1, 1,
                                             DType::kFp32)));  // one group is no depthwise
}

TEST(PytorchConvolutionTest, DepthwiseConvolutionsUseNativeKernelsWithoutWorkspace) {
  for (const DType dtype : {DType::kFp32, DType::kBf16}) {
    const ConvolutionQuery query = depthwise(8, 64, 32, 3, 1, dtype);
    EXPECT_EQ(pytorch_convolution_backend(query), ConvolutionBackend::kDepthwise);
    EXPECT_EQ(pytorch_workspace_without_cudnn(query), Bytes{});
  }
  // A channel multiplier is still depthwise, a 3-D one too.
  EXPECT_FALSE(
      pytorch_uses_cudnn(convolution({8, 64, 32, 32}, {128, 1, 3, 3}, 1, 64, DType::kFp32)));
  EXPECT_FALSE(
      pytorch_uses_cudnn(convolution({8, 64, 8, 32, 32}, {64, 1, 3, 3, 3}, 1, 64, DType::kFp16)));
}

TEST(PytorchConvolutionTest, ChannelsLastDepthwiseUsesCudnnInEveryDtype) {
  for (const DType dtype : {DType::kFp32, DType::kFp16, DType::kBf16}) {
    ConvolutionQuery query = depthwise(8, 64, 32, 3, 1, dtype);
    query.channels_last = true;
    EXPECT_TRUE(pytorch_uses_cudnn(query));
  }
}

TEST(PytorchConvolutionTest, ContiguousFp16DepthwiseGoesToCudnnWhereItWasFoundFaster) {
  const DType half = DType::kFp16;
  EXPECT_TRUE(pytorch_uses_cudnn(depthwise(8, 64, 32, 3, 1, half)));
  EXPECT_FALSE(pytorch_uses_cudnn(depthwise(8, 31, 32, 3, 1, half)));  // too few channels
  EXPECT_FALSE(pytorch_uses_cudnn(depthwise(8, 64, 32, 7, 1, half)));  // kernel 1, 3 or 5 only
  EXPECT_FALSE(pytorch_uses_cudnn(depthwise(8, 64, 6, 3, 1, half)));   // too narrow
  EXPECT_FALSE(pytorch_uses_cudnn(depthwise(8, 64, 32, 3, 2, half)));
  EXPECT_TRUE(pytorch_uses_cudnn(depthwise(8, 512, 14, 3, 2, half)));
  EXPECT_TRUE(pytorch_uses_cudnn(depthwise(8, 256, 28, 3, 2, half)));
  EXPECT_FALSE(pytorch_uses_cudnn(depthwise(8, 256, 27, 3, 2, half)));
  EXPECT_TRUE(pytorch_uses_cudnn(depthwise(1, 64, 32, 5, 2, half)));
  EXPECT_FALSE(pytorch_uses_cudnn(depthwise(1, 64, 32, 1, 2, half)));
  EXPECT_TRUE(pytorch_uses_cudnn(depthwise(1, 64, 28, 1, 2, half)));
  EXPECT_TRUE(
      pytorch_uses_cudnn(convolution({8, 64, 100}, {64, 1, 7}, 1, 64, half)));  // 1-D, stride 1
  ConvolutionQuery dilated = depthwise(8, 64, 32, 3, 1, half);
  dilated.dilation = {2, 2};
  EXPECT_FALSE(pytorch_uses_cudnn(dilated));
}

TEST(PytorchConvolutionTest, TransposedGoesToCudnnUnlessTheOutputPaddingReachesTheStride) {
  ConvolutionQuery query = convolution({4, 32, 16, 16}, {32, 8, 4, 4}, 2, 1, DType::kFp32);
  query.transposed = true;
  query.padding = {1, 1};
  query.output_padding = {1, 1};
  EXPECT_TRUE(pytorch_uses_cudnn(query));
  query.output_padding = {2, 0};
  EXPECT_EQ(pytorch_convolution_backend(query), ConvolutionBackend::kSlow);
  // One sample's columns: 8 channels x 4 x 4 kernel elements x 16 x 16 positions of the input, in
  // fp32.
  EXPECT_EQ(pytorch_workspace_without_cudnn(query), Bytes{std::int64_t{8} * 16 * 256 * 4});
}

TEST(PytorchConvolutionTest, CudnnVersionsWithFaultyHalfPrecision3dKernelsAreAvoided) {
  const ConvolutionQuery query =
      convolution({2, 16, 8, 16, 16}, {32, 16, 3, 3, 3}, 1, 1, DType::kBf16);
  EXPECT_TRUE(pytorch_uses_cudnn(query, 90700));
  EXPECT_FALSE(pytorch_uses_cudnn(query, 90800));
  EXPECT_FALSE(pytorch_uses_cudnn(query, 91499));
  EXPECT_TRUE(pytorch_uses_cudnn(query, 91500));
  EXPECT_EQ(pytorch_workspace_without_cudnn(query, 91000),
            Bytes{std::int64_t{16} * 27 * 8 * 16 * 16 * 2});
  ConvolutionQuery pointwise = query;
  pointwise.weight = {32, 16, 1, 1, 1};
  EXPECT_TRUE(pytorch_uses_cudnn(pointwise, 91000));
}

TEST(PytorchConvolutionTest, RefusesAStrideOfZero) {
  ConvolutionQuery query = convolution({4, 32, 16, 16}, {32, 32, 3, 3}, 1, 1, DType::kFp32);
  query.stride = {0, 0};
  query.output_padding = {0, 0};
  EXPECT_THROW(pytorch_workspace_without_cudnn(query), Error);
}

}  // namespace
}  // namespace memfathom

#include "kernels/devices/cuda/cudnn/graph.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.h"

namespace memfathom::cudnn {
namespace {

using ::testing::HasSubstr;

ConvolutionQuery query_2d() {
  ConvolutionQuery query;
  query.input = {8, 64, 33, 17};
  query.weight = {128, 64, 3, 3};
  query.stride = {2, 1};
  query.padding = {1, 1};
  query.dilation = {1, 1};
  return query;
}

std::string refusal(const ConvolutionQuery& query) {
  try {
    to_cudnn(query);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kInput);
    return error.what();
  }
  return "accepted";
}

TEST(CudnnConvolutionTest, OutputExtentsFollowStridePaddingAndDilation) {
  ConvolutionQuery query = query_2d();
  EXPECT_EQ(to_cudnn(query).y, (Shape{8, 128, 17, 17}));
  query.dilation = {2, 2};
  EXPECT_EQ(to_cudnn(query).y, (Shape{8, 128, 16, 15}));
}

TEST(CudnnConvolutionTest, ATransposedConvolutionIsTheDataGradientOfAnOrdinaryOne) {
  ConvolutionQuery query;
  query.input = {4, 32, 16, 16};
  query.weight = {32, 8, 4, 4};
  query.stride = {2, 2};
  query.padding = {1, 1};
  query.output_padding = {1, 1};
  query.dilation = {1, 1};
  query.groups = 2;
  query.transposed = true;
  const Convolution forward = to_cudnn(query);
  EXPECT_EQ(forward.kind, ConvolutionKind::kDataGradient);
  EXPECT_EQ(forward.y, (Shape{4, 32, 16, 16}));
  EXPECT_EQ(forward.x, (Shape{4, 16, 33, 33}));
  query.kind = ConvolutionKind::kDataGradient;
  EXPECT_EQ(to_cudnn(query).kind, ConvolutionKind::kForward);
  query.kind = ConvolutionKind::kWeightGradient;
  EXPECT_EQ(to_cudnn(query).kind, ConvolutionKind::kWeightGradient);
}

TEST(CudnnConvolutionTest, ConvertsOneSpatialExtentToTwoContiguousOnes) {
  ConvolutionQuery query;
  query.input = {4, 16, 100};
  query.weight = {32, 16, 5};
  query.stride = {1};
  query.padding = {2};
  query.dilation = {1};
  query.channels_last = true;
  const Convolution convolution = to_cudnn(query);
  EXPECT_EQ(convolution.x, (Shape{4, 16, 1, 100}));
  EXPECT_EQ(convolution.w, (Shape{32, 16, 1, 5}));
  EXPECT_EQ(convolution.y, (Shape{4, 32, 1, 100}));
  EXPECT_EQ(convolution.padding, (Shape{0, 2}));
  EXPECT_FALSE(convolution.channels_last);
}

TEST(CudnnConvolutionTest, RefusesContradictingShapes) {
  ConvolutionQuery query = query_2d();
  query.weight = {128, 32, 3, 3};
  EXPECT_THAT(refusal(query), HasSubstr("the input's channels must be those of the weight"));
  query = query_2d();
  query.stride = {2};
  EXPECT_THAT(refusal(query), HasSubstr("one value per spatial extent"));
  query = query_2d();
  query.stride = {0, 1};
  EXPECT_THAT(refusal(query), HasSubstr("must be at least 1"));
  query = query_2d();
  query.weight = {128, 64, 40, 3};
  EXPECT_THAT(refusal(query), HasSubstr("the kernel is larger than the padded input"));
  query = query_2d();
  query.groups = 3;
  EXPECT_THAT(refusal(query), HasSubstr("the groups must divide"));
}

TEST(CudnnGraphTest, RefusesAnUnsupportedDtype) {
  ConvolutionQuery query = query_2d();
  query.dtype = DType::kInt64;
  try {
    const Graph graph(to_cudnn(query));
    FAIL() << "accepted";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("type int64"));
  }
}

TEST(CudnnDescriptorTest, ErrorsNameTheCallTheDescriptorAndTheStatus) {
  Descriptor tensor(CUDNN_BACKEND_TENSOR_DESCRIPTOR, "tensor");
  try {
    tensor.finalize();
    FAIL() << "a tensor without attributes was finalized";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kEnvironment);
    EXPECT_THAT(error.what(), HasSubstr("cudnnBackendFinalize(tensor) failed with CUDNN_STATUS_"));
  }
}

}  // namespace
}  // namespace memfathom::cudnn

#include "kernels/workspaces/early_cudnn9.h"

#include <gtest/gtest.h>

namespace memfathom {
namespace {

class Seven final : public WorkspaceModel {
 public:
  WorkspaceSize convolution(const ConvolutionQuery&) const override {
    return {Bytes{7}, Source::kFitted};
  }
  WorkspaceSize fft(const FftQuery&) const override { return {Bytes{9}, Source::kDefault}; }
  WorkspaceSize attention(const AttentionQuery&) const override { return {}; }
};

ConvolutionQuery forward(std::int64_t in, std::int64_t out) {
  ConvolutionQuery query;
  query.input = {8, in, 32, 32};
  query.weight = {out, in, 3, 3};
  query.stride = query.padding = query.dilation = {1, 1};
  return query;
}

TEST(UnrecordedCudnnTest, ForwardWithFewOutputsNeedsNoWorkspace) {
  const EarlyCudnn9Model model(std::make_unique<Seven>());
  EXPECT_EQ(model.convolution(forward(256, 32)).bytes, Bytes{0});
  EXPECT_EQ(model.convolution(forward(255, 32)).bytes, Bytes{7});
  EXPECT_EQ(model.fft({}).bytes, Bytes{9});
}

TEST(UnrecordedCudnnTest, OtherQueriesEqualLaterVersions) {
  ConvolutionQuery gradient = forward(256, 32);
  gradient.kind = ConvolutionKind::kWeightGradient;
  EXPECT_FALSE(skips_layout_conversion(gradient));
  ConvolutionQuery half = forward(256, 32);
  half.dtype = DType::kFp16;
  EXPECT_FALSE(skips_layout_conversion(half));
  ConvolutionQuery pointwise = forward(256, 32);
  pointwise.weight = {32, 256, 1, 1};
  EXPECT_FALSE(skips_layout_conversion(pointwise));
  ConvolutionQuery last = forward(256, 32);
  last.channels_last = true;
  EXPECT_FALSE(skips_layout_conversion(last));
}

}  // namespace
}  // namespace memfathom

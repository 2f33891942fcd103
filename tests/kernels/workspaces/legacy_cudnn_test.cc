#include "kernels/workspaces/legacy_cudnn.h"

#include <gtest/gtest.h>

namespace memfathom {
namespace {

ConvolutionQuery weight_gradient(Shape input, Shape weight) {
  ConvolutionQuery query;
  query.kind = ConvolutionKind::kWeightGradient;
  query.input = input;
  query.weight = weight;
  query.stride = {1, 1};
  query.padding = {1, 1};
  query.dilation = {1, 1};
  return query;
}

class Nothing final : public WorkspaceModel {
 public:
  WorkspaceSize convolution(const ConvolutionQuery&) const override {
    return {Bytes{7}, Source::kExact};
  }
  WorkspaceSize fft(const FftQuery&) const override { return {Bytes{9}, Source::kDefault}; }
  WorkspaceSize attention(const AttentionQuery&) const override { return {}; }
};

TEST(OlderCudnnTest, WeightGradientNeedsTilesOfBothMapsAndTheWeight) {
  // 8 x 32 x 32 tiles of 36 fp32 for 64 + 64 channels: 144 MiB; and 64 x 64 tiles of weights.
  const auto bytes = winograd_weight_gradient(weight_gradient({8, 64, 128, 128}, {64, 64, 3, 3}));
  ASSERT_TRUE(bytes.has_value());
  EXPECT_EQ(bytes->count(), (144 << 20) + 36 * 4 * 64 * 64);
}

TEST(OlderCudnnTest, CountsPartialTilesAsWhole) {
  EXPECT_EQ(winograd_weight_gradient(weight_gradient({1, 1, 5, 5}, {1, 1, 3, 3}))->count(),
            36 * 4 * (4 * 2 + 1));
}

TEST(OlderCudnnTest, OtherConvolutionsUseOtherAlgorithms) {
  const ConvolutionQuery query = weight_gradient({8, 64, 128, 128}, {64, 64, 3, 3});
  ConvolutionQuery forward = query;
  forward.kind = ConvolutionKind::kForward;
  EXPECT_FALSE(winograd_weight_gradient(forward));
  ConvolutionQuery half = query;
  half.dtype = DType::kFp16;
  EXPECT_FALSE(winograd_weight_gradient(half));
  ConvolutionQuery strided = query;
  strided.stride = {2, 2};
  EXPECT_FALSE(winograd_weight_gradient(strided));
  EXPECT_FALSE(winograd_weight_gradient(weight_gradient({8, 64, 128, 128}, {64, 64, 5, 5})));
  EXPECT_FALSE(winograd_weight_gradient(weight_gradient({32, 64, 224, 224}, {64, 64, 3, 3})));
  EXPECT_FALSE(winograd_weight_gradient(
      weight_gradient({1 << 30, 1 << 30, 1 << 30, 1 << 30}, {1 << 30, 1 << 30, 3, 3})));
}

TEST(OlderCudnnTest, ForwardsOtherQueriesToTheNextModel) {
  const LegacyCudnnModel model(std::make_unique<Nothing>());
  const ConvolutionQuery query = weight_gradient({8, 64, 128, 128}, {64, 64, 3, 3});
  EXPECT_EQ(model.convolution(query).source, Source::kFitted);
  ConvolutionQuery forward = query;
  forward.kind = ConvolutionKind::kForward;
  EXPECT_EQ(model.convolution(forward).bytes.count(), 7);
  EXPECT_EQ(model.fft({}).bytes.count(), 9);
}

}  // namespace
}  // namespace memfathom

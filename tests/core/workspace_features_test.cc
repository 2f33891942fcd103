#include "core/workspace_features.h"

#include <gtest/gtest.h>

#include "core/error.h"
#include "core/fitted_workspaces.h"

namespace memfathom {
namespace {

ConvolutionQuery strided() {
  ConvolutionQuery query;
  query.input = {32, 3, 224, 224};
  query.weight = {64, 3, 7, 7};
  query.stride = {2, 2};
  query.padding = {3, 3};
  query.dilation = {1, 1};
  query.dtype = DType::kFp16;
  return query;
}

TEST(WorkspaceFeaturesTest, SizesOfAStridedConvolution) {
  const WorkspaceFeatures f = features_of(strided());
  EXPECT_EQ(f[kTermConstant], 1);
  EXPECT_EQ(f[kTermInput], 2.0 * 32 * 3 * 224 * 224);
  EXPECT_EQ(f[kTermOutput], 2.0 * 32 * 64 * 112 * 112);
  EXPECT_EQ(f[kTermWeights], 2.0 * 64 * 3 * 7 * 7);
  EXPECT_EQ(f[kTermLowered], 2.0 * 32 * 3 * 49 * 112 * 112);
}

TEST(WorkspaceFeaturesTest, ATransposedConvolutionGrows) {
  ConvolutionQuery query;
  query.input = {1, 8, 10, 10};
  query.weight = {8, 4, 4, 4};
  query.stride = {2, 2};
  query.padding = {1, 1};
  query.transposed = true;
  EXPECT_EQ(features_of(query)[kTermOutput], 4.0 * 4 * 20 * 20);
}

TEST(WorkspaceFeaturesTest, ARealTransformKeepsHalfTheSpectrum) {
  FftQuery query;
  query.extents = {64, 64};
  query.batch = 3;
  const WorkspaceFeatures f = features_of(query);
  EXPECT_EQ(f[kTermInput], 4.0 * 3 * 64 * 64);
  EXPECT_EQ(f[kTermOutput], 8.0 * 3 * 64 * 33);
  EXPECT_EQ(operation_of(query), "rfft2");
}

TEST(WorkspaceFeaturesTest, TreatsOneByOneKernelsAsASeparateOperation) {
  ConvolutionQuery query = strided();
  EXPECT_EQ(operation_of(query), "convolution forward");
  query.weight = {64, 3, 1, 1};
  query.kind = ConvolutionKind::kWeightGradient;
  EXPECT_EQ(operation_of(query), "pointwise convolution weight_gradient");
}

TEST(WorkspaceFeaturesTest, RefusesAQueryWhoseRanksDoNotMatch) {
  ConvolutionQuery query = strided();
  query.weight = {64, 3, 7};
  EXPECT_THROW(features_of(query), Error);
}

TEST(FittedWorkspacesTest, AnswersFromTheCalibrationOrTheFallback) {
  Calibration calibration;
  calibration.coefficients.push_back({"phi.cudnn.convolution_forward.input", 1.0});
  calibration.coefficients.push_back({"phi.cudnn.convolution_forward.output", 0.5});
  const FittedWorkspaces model(calibration);
  const WorkspaceFeatures f = features_of(strided());
  const WorkspaceSize answer = model.convolution(strided());
  EXPECT_EQ(answer.bytes.count(), static_cast<std::int64_t>(f[kTermInput] + 0.5 * f[kTermOutput]));
  EXPECT_EQ(answer.source, Source::kFitted);
  EXPECT_EQ(model.fft({}).bytes, Bytes{0}) << "no model, no fallback";
  EXPECT_EQ(model.fft({}).source, Source::kDefault);
}

}  // namespace
}  // namespace memfathom

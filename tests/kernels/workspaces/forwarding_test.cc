// A model that wraps another one forwards what it does not answer itself.
#include <gtest/gtest.h>

#include <memory>

#include "core/fitted_workspaces.h"
#include "kernels/workspaces/cached_workspace_model.h"
#include "kernels/workspaces/early_cudnn9.h"
#include "kernels/workspaces/legacy_cudnn.h"

namespace memfathom {
namespace {

// Each query has an answer of its own.
class DistinctAnswers final : public WorkspaceModel {
 public:
  WorkspaceSize convolution(const ConvolutionQuery&) const override {
    return {Bytes{11}, Source::kMeasured};
  }
  WorkspaceSize fft(const FftQuery&) const override { return {Bytes{22}, Source::kMeasured}; }
  WorkspaceSize attention(const AttentionQuery&) const override {
    return {Bytes{33}, Source::kMeasured};
  }
};

// Planned by cuDNN, with many outputs for its inputs: no wrapper has an answer of its own.
ConvolutionQuery plain_convolution() {
  ConvolutionQuery query;
  query.input = {8, 64, 32, 32};
  query.weight = {128, 64, 3, 3};
  query.stride = {1, 1};
  query.padding = {1, 1};
  query.output_padding = {0, 0};
  query.dilation = {1, 1};
  return query;
}

void expect_forwarding(const WorkspaceModel& model) {
  EXPECT_EQ(model.convolution(plain_convolution()).bytes, Bytes{11});
  EXPECT_EQ(model.fft({FftKind::kRealToComplex, {64, 64}, 2}).bytes, Bytes{22});
  const WorkspaceSize attention = model.attention({});
  EXPECT_EQ(attention.bytes, Bytes{33});
  EXPECT_EQ(attention.source, Source::kMeasured);
}

TEST(ForwardingTest, TheCachedModelForwardsToItsFallback) {
  expect_forwarding(CachedWorkspaceModel(nullptr, std::make_unique<WorkspaceStore>(""),
                                         std::make_unique<DistinctAnswers>()));
}

TEST(ForwardingTest, TheLegacyModelForwardsToCurrentCudnn) {
  expect_forwarding(LegacyCudnnModel(std::make_unique<DistinctAnswers>()));
}

TEST(ForwardingTest, TheEarlyModelForwardsToLaterCudnn) {
  expect_forwarding(EarlyCudnn9Model(std::make_unique<DistinctAnswers>()));
}

TEST(ForwardingTest, TheCalibrationModelForwardsToItsFallback) {
  const DistinctAnswers fallback;
  expect_forwarding(FittedWorkspaces(Calibration{}, Library::kCudnn, Library::kCufft, &fallback));
}

}  // namespace
}  // namespace memfathom

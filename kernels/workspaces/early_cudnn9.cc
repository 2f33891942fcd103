#include "kernels/workspaces/early_cudnn9.h"

#include <utility>

namespace memfathom {
namespace {

constexpr std::int64_t kFewOutputs = 8;

}  // namespace

bool skips_layout_conversion(const ConvolutionQuery& query) {
  return query.kind == ConvolutionKind::kForward && query.dtype == DType::kFp32 &&
         !query.transposed && !query.channels_last && query.groups == 1 &&
         query.weight.rank() == 4 && query.weight[2] > 1 &&
         query.weight[1] >= kFewOutputs * query.weight[0];
}

EarlyCudnn9Model::EarlyCudnn9Model(std::unique_ptr<WorkspaceModel> later)
    : later_(std::move(later)) {}

WorkspaceSize EarlyCudnn9Model::convolution(const ConvolutionQuery& query) const {
  if (skips_layout_conversion(query)) return {Bytes{}, Source::kFitted};
  return later_->convolution(query);
}

WorkspaceSize EarlyCudnn9Model::fft(const FftQuery& query) const { return later_->fft(query); }

WorkspaceSize EarlyCudnn9Model::attention(const AttentionQuery& query) const {
  return later_->attention(query);
}

}  // namespace memfathom

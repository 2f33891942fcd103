#include "kernels/workspaces/unrecorded_cudnn.h"

#include <utility>

namespace memfathom {
namespace {

constexpr std::int64_t kFewOutputs = 8;

}  // namespace

bool reads_maps_as_they_lie(const ConvolutionQuery& query) {
  return query.kind == ConvolutionKind::kForward && query.dtype == DType::kFp32 &&
         !query.transposed && !query.channels_last && query.groups == 1 &&
         query.weight.rank() == 4 && query.weight[2] > 1 &&
         query.weight[1] >= kFewOutputs * query.weight[0];
}

UnrecordedCudnnModel::UnrecordedCudnnModel(std::unique_ptr<WorkspaceModel> later)
    : later_(std::move(later)) {}

WorkspaceAnswer UnrecordedCudnnModel::convolution(const ConvolutionQuery& query) const {
  if (reads_maps_as_they_lie(query)) return {Bytes{}, Source::kFitted};
  return later_->convolution(query);
}

WorkspaceAnswer UnrecordedCudnnModel::fft(const FftQuery& query) const {
  return later_->fft(query);
}

}  // namespace memfathom

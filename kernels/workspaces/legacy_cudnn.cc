#include "kernels/workspaces/legacy_cudnn.h"

#include <cmath>
#include <utility>

namespace memfathom {
namespace {

constexpr double kTileElements = 36;  // 6x6
constexpr double kTileStep = 4;
constexpr double kElement = 4;  // bytes
constexpr double kLargest = 512 << 20;

bool all_are(const Shape& shape, std::int64_t value) {
  for (const std::int64_t extent : shape) {
    if (extent != value) return false;
  }
  return true;
}

}  // namespace

std::optional<Bytes> winograd_weight_gradient(const ConvolutionQuery& query) {
  if (query.kind != ConvolutionKind::kWeightGradient || query.dtype != DType::kFp32 ||
      query.transposed || query.channels_last || query.groups != 1 || query.input.rank() != 4 ||
      query.weight[2] != 3 || query.weight[3] != 3 || !all_are(query.stride, 1) ||
      !all_are(query.dilation, 1))
    return std::nullopt;
  double tiles = static_cast<double>(query.input[0]);
  for (int i = 2; i < 4; ++i) {
    const double outputs = static_cast<double>(query.input[i] + 2 * query.padding[i - 2]) - 2;
    tiles *= std::ceil(outputs / kTileStep);
  }
  const double in = static_cast<double>(query.weight[1]);
  const double out = static_cast<double>(query.weight[0]);
  const double bytes = kTileElements * kElement * (tiles * (in + out) + in * out);
  if (bytes > kLargest) return std::nullopt;
  return Bytes{static_cast<std::int64_t>(bytes)};
}

LegacyCudnnModel::LegacyCudnnModel(std::unique_ptr<WorkspaceModel> without_tf32)
    : without_tf32_(std::move(without_tf32)) {}

WorkspaceSize LegacyCudnnModel::convolution(const ConvolutionQuery& query) const {
  if (const std::optional<Bytes> bytes = winograd_weight_gradient(query))
    return {*bytes, Source::kFitted};
  return without_tf32_->convolution(query);
}

WorkspaceSize LegacyCudnnModel::fft(const FftQuery& query) const {
  return without_tf32_->fft(query);
}

WorkspaceSize LegacyCudnnModel::attention(const AttentionQuery& query) const {
  return without_tf32_->attention(query);
}

}  // namespace memfathom

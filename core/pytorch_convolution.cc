#include "core/pytorch_convolution.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "core/error.h"

namespace memfathom {
namespace {

// A 1-D convolution is chosen for, and run, as a 2-D one of height 1.
struct Extents {
  std::int64_t height, width, kernel_height, kernel_width, stride_height, stride_width;
};

Extents planar(const ConvolutionQuery& query) {
  if (query.input.rank() == 3) return {1, query.input[2], 1, query.weight[2], 1, query.stride[0]};
  return {query.input[2],  query.input[3],  query.weight[2],
          query.weight[3], query.stride[0], query.stride[1]};
}

bool is_dilated(const ConvolutionQuery& query) {
  return std::any_of(query.dilation.begin(), query.dilation.end(),
                     [](std::int64_t d) { return d != 1; });
}

// A 3-D input has been made contiguous by then; only 2-D and 3-D maps can be channels-last.
bool is_channels_last(const ConvolutionQuery& query) {
  return query.channels_last && query.input.rank() > 3;
}

bool has_big_output_padding(const ConvolutionQuery& query) {
  for (int i = 0; i < query.output_padding.rank(); ++i) {
    if (query.output_padding[i] >= query.stride[i]) return true;
  }
  return false;
}

bool is_depthwise(const ConvolutionQuery& query) {
  return !query.transposed && query.groups > 1 && query.input[1] == query.groups &&
         query.weight[0] % query.input[1] == 0;
}

// canUse32BitIndexMath (aten/src/ATen/native/IndexingUtils.cpp) of a contiguous tensor.
bool indexes_in_32_bits(const Shape& shape) {
  return shape.elements() < std::numeric_limits<std::int32_t>::max();
}

// Faulty in cuDNN 9.8 to 9.14: 16-bit 3-D kernels larger than one point, contiguous.
bool use_cudnn(const ConvolutionQuery& query, std::int64_t cudnn_version) {
  if (cudnn_version >= 90800 && cudnn_version < 91500 && !is_channels_last(query) &&
      is_16bit_float(query.dtype) && query.weight.rank() == 5) {
    for (int i = 2; i < 5; ++i) {
      if (query.weight[i] != 1) return false;
    }
  }
  return !has_big_output_padding(query);
}

// fp16 maps for which cuDNN's depthwise kernels were found faster than the native ones.
bool is_fast_in_cudnn(const ConvolutionQuery& query) {
  const Extents at = planar(query);
  if (at.height == 1 && at.stride_width == 1) return true;
  if (at.kernel_height != at.kernel_width) return false;
  const std::int64_t kernel = at.kernel_width;
  if (kernel != 1 && kernel != 3 && kernel != 5) return false;
  if (at.width < 7) return false;
  if (at.stride_width == 1) return true;
  if (at.stride_width != 2) return false;
  const std::int64_t batch = query.input[0];
  const std::int64_t channels = query.input[1];
  if (batch == 1) return kernel != 1 || at.width <= 28;
  if (kernel == 1) return batch <= 16 && channels >= 128 && at.width <= 7;
  return channels >= 512 || (channels >= 256 && at.width >= 28);
}

bool use_cudnn_depthwise(const ConvolutionQuery& query, std::int64_t cudnn_version) {
  if (!indexes_in_32_bits(query.input) || !indexes_in_32_bits(query.weight)) {
    return !(is_channels_last(query) && cudnn_version > 91000 && cudnn_version < 91500);
  }
  if (is_channels_last(query)) return true;
  if (query.dtype != DType::kFp16 || query.input.rank() == 5 || is_dilated(query) ||
      query.input[1] < 32)
    return false;
  const Extents at = planar(query);
  if (at.stride_height != at.stride_width && at.height != 1) return false;
  return use_cudnn(query, cudnn_version) && is_fast_in_cudnn(query);
}

}  // namespace

ConvolutionBackend pytorch_convolution_backend(const ConvolutionQuery& query,
                                               std::int64_t cudnn_version) {
  if (is_depthwise(query)) {
    return use_cudnn_depthwise(query, cudnn_version) ? ConvolutionBackend::kCudnn
                                                     : ConvolutionBackend::kDepthwise;
  }
  return use_cudnn(query, cudnn_version) ? ConvolutionBackend::kCudnn : ConvolutionBackend::kSlow;
}

Bytes slow_columns(const ConvolutionQuery& query) {
  Shape columns{query.weight[1]};
  for (int i = 2; i < query.weight.rank(); ++i) columns.push_back(query.weight[i]);
  std::int64_t positions = 1;
  for (int i = 2; i < query.input.rank(); ++i) {
    if (query.stride[i - 2] < 1) {
      throw Error(ErrorKind::kInput,
                  fmt::format("{}: every stride must be at least 1", to_string(query)));
    }
    const std::int64_t reach = query.dilation[i - 2] * (query.weight[i] - 1) + 1;
    positions *=
        query.transposed
            ? query.input[i]
            : (query.input[i] + 2 * query.padding[i - 2] - reach) / query.stride[i - 2] + 1;
  }
  return size_of(columns, query.dtype) * positions;
}

std::optional<Bytes> pytorch_workspace_without_cudnn(const ConvolutionQuery& query,
                                                     std::int64_t cudnn_version) {
  switch (pytorch_convolution_backend(query, cudnn_version)) {
    case ConvolutionBackend::kCudnn: return std::nullopt;
    case ConvolutionBackend::kDepthwise: return Bytes{};
    case ConvolutionBackend::kSlow: return slow_columns(query);
  }
  return std::nullopt;
}

}  // namespace memfathom

#include "kernels/workspaces/convolution_sizes.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace memfathom {
namespace {

constexpr std::int64_t kLargest = std::int64_t{1} << 50;  // bytes; no tensor is larger

// Products are taken in doubles first: a hostile query must not overflow.
std::optional<std::int64_t> whole(double bytes) {
  if (!(bytes >= 0) || bytes > static_cast<double>(kLargest)) return std::nullopt;
  return static_cast<std::int64_t>(bytes);
}

double padded(double channels, double element) {
  const double step = 16 / element;
  return std::ceil(channels / step) * step;
}

float log2_of(double value) { return static_cast<float>(std::log2(std::max(value, 1.0))); }

// How many positions the kernel sees and writes, and how many it has itself.
struct Extents {
  double in = 1, out = 1, kernel = 1;
};

// Nothing for a query that is no convolution.
std::optional<Extents> extents_of(const ConvolutionQuery& query) {
  const int rank = query.input.rank();
  const int spatial = rank - 2;
  if (rank < 3 || rank > 5 || query.weight.rank() != rank || query.stride.rank() != spatial ||
      query.padding.rank() != spatial || query.dilation.rank() != spatial || query.groups < 1) {
    return std::nullopt;
  }
  Extents extents;
  for (int i = 0; i < spatial; ++i) {
    const std::int64_t stride = query.stride[i];
    if (stride < 1) return std::nullopt;
    const double in = static_cast<double>(query.input[i + 2]);
    const double reach =
        static_cast<double>(query.dilation[i]) * (static_cast<double>(query.weight[i + 2]) - 1) + 1;
    const double pad = 2 * static_cast<double>(query.padding[i]);
    const double extra =
        query.output_padding.rank() == spatial ? static_cast<double>(query.output_padding[i]) : 0;
    const double out = query.transposed
                           ? (in - 1) * static_cast<double>(stride) - pad + reach + extra
                           : std::floor((in + pad - reach) / static_cast<double>(stride)) + 1;
    if (in < 1 || out < 1) return std::nullopt;
    extents.in *= in;
    extents.out *= out;
    extents.kernel *= static_cast<double>(query.weight[i + 2]);
  }
  return extents;
}

}  // namespace

std::optional<ConvolutionProfile> measure(const ConvolutionQuery& query) {
  std::optional<Extents> extents = extents_of(query);
  if (!extents) return std::nullopt;
  // As cuDNN sees a transposed convolution: input and output exchanged.
  if (query.transposed) std::swap(extents->in, extents->out);
  const int spatial = query.input.rank() - 2;
  const double batch = static_cast<double>(query.input[0]);
  const double groups = static_cast<double>(query.groups);
  const double in_channels = static_cast<double>(query.weight[1]) * groups;
  const double out_channels = static_cast<double>(query.weight[0]);
  const double element = static_cast<double>(bits_of(query.dtype)) / 8;
  const double weight_element = query.kind == ConvolutionKind::kWeightGradient ? 4 : element;

  const double per_group = padded(in_channels / groups, element);
  const auto input = whole(batch * padded(in_channels, element) * extents->in * element);
  const auto output = whole(batch * padded(out_channels, element) * extents->out * element);
  const auto weight =
      whole(padded(out_channels, element) * per_group * extents->kernel * weight_element);
  if (!input || !output || !weight || in_channels < 1 || out_channels < 1) return std::nullopt;

  ConvolutionProfile measured;
  measured.sizes = {*input, *output, *weight};
  const double step = 16 / element;
  const double multiply_adds =
      batch * extents->out * out_channels * in_channels / groups * extents->kernel;
  measured.features = {
      log2_of(batch),
      log2_of(in_channels / groups),
      log2_of(out_channels / groups),
      log2_of(extents->in),
      log2_of(extents->out),
      log2_of(extents->kernel),
      static_cast<float>(query.stride[spatial - 1]),
      static_cast<float>(query.dilation[spatial - 1]),
      log2_of(groups),
      static_cast<float>(std::fmod(in_channels / groups, step)),
      static_cast<float>(std::fmod(out_channels / groups, step)),
      log2_of(static_cast<double>(*input)),
      log2_of(static_cast<double>(*output)),
      log2_of(static_cast<double>(*weight)),
      log2_of(multiply_adds),
      static_cast<float>(spatial),
  };
  return measured;
}

std::int64_t bytes_of(const WorkspaceForm& form, const ConvolutionSizes& sizes) {
  return sizes.input * form.input_halves / 2 + sizes.output * form.output_halves / 2 +
         sizes.weight * form.weight_halves / 2;
}

}  // namespace memfathom

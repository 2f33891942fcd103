#include "core/workspace_features.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/error.h"

namespace memfathom {
namespace {

double product(const Shape& shape) {
  double elements = 1;
  for (const std::int64_t extent : shape) elements *= static_cast<double>(extent);
  return elements;
}

std::int64_t at_or(const Shape& shape, int i, std::int64_t fallback) {
  return i < shape.rank() ? shape[i] : fallback;
}

double bytes_per_element(DType type) { return bits_of(type) / 8.0; }

// The extent of the forward output along spatial dimension i.
std::int64_t output_extent(const ConvolutionQuery& query, int i) {
  const std::int64_t size = query.input[i + 2];
  const std::int64_t stride = std::max<std::int64_t>(at_or(query.stride, i, 1), 1);
  const std::int64_t padding = at_or(query.padding, i, 0);
  const std::int64_t reach = at_or(query.dilation, i, 1) * (query.weight[i + 2] - 1);
  const std::int64_t extent = query.transposed ? (size - 1) * stride - 2 * padding + reach +
                                                     at_or(query.output_padding, i, 0) + 1
                                               : (size + 2 * padding - reach - 1) / stride + 1;
  return std::max<std::int64_t>(extent, 0);
}

}  // namespace

const char* to_string(WorkspaceTerm term) {
  switch (term) {
    case kTermConstant: return "constant";
    case kTermInput: return "input";
    case kTermOutput: return "output";
    case kTermWeights: return "weights";
    case kTermLowered: return "lowered";
    case kWorkspaceTermCount: break;
  }
  return "";
}

WorkspaceFeatures features_of(const ConvolutionQuery& query) {
  if (query.input.rank() < 3 || query.weight.rank() != query.input.rank()) {
    throw Error(ErrorKind::kInput,
                fmt::format("workspace of \"{}\": input and weight need the same rank, at least 3",
                            to_string(query)));
  }
  const double element = bytes_per_element(query.dtype);
  double pixels = 1;
  double kernel = 1;
  for (int i = 0; i + 2 < query.input.rank(); ++i) {
    pixels *= static_cast<double>(output_extent(query, i));
    kernel *= static_cast<double>(query.weight[i + 2]);
  }
  const auto batch = static_cast<double>(query.input[0]);
  const auto in_channels = static_cast<double>(query.input[1]);
  const auto out_channels =
      static_cast<double>(query.transposed ? query.weight[1] * query.groups : query.weight[0]);
  WorkspaceFeatures features{};
  features[kTermConstant] = 1;
  features[kTermInput] = product(query.input) * element;
  features[kTermOutput] = batch * out_channels * pixels * element;
  features[kTermWeights] = product(query.weight) * element;
  features[kTermLowered] = batch * in_channels * kernel * pixels * element;
  return features;
}

WorkspaceFeatures features_of(const FftQuery& query) {
  const double element = bytes_per_element(query.dtype);
  const double points = product(query.extents) * static_cast<double>(query.batch);
  const double last = query.extents.rank() > 0 ? static_cast<double>(query.extents[-1]) : 1;
  const double half = last > 0 ? points / last * (std::floor(last / 2) + 1) : 0;
  const double real = points * element;
  const double complex = (query.kind == FftKind::kComplexToComplex ? points : half) * 2 * element;
  WorkspaceFeatures features{};
  features[kTermConstant] = 1;
  features[kTermInput] = query.kind == FftKind::kRealToComplex ? real : complex;
  features[kTermOutput] = query.kind == FftKind::kComplexToReal ? real : complex;
  features[kTermLowered] = complex;
  return features;
}

std::string operation_of(const ConvolutionQuery& query) {
  const bool pointwise =
      std::all_of(query.weight.begin() + std::min(2, query.weight.rank()), query.weight.end(),
                  [](std::int64_t extent) { return extent == 1; });
  return fmt::format("{}{} {}", pointwise ? "pointwise " : "",
                     query.transposed ? "transposed convolution" : "convolution",
                     to_string(query.kind));
}

std::string operation_of(const FftQuery& query) {
  const char* stem = query.kind == FftKind::kRealToComplex   ? "rfft"
                     : query.kind == FftKind::kComplexToReal ? "irfft"
                                                             : "fft";
  return fmt::format("{}{}", stem, query.extents.rank());
}

std::string phi_name(Library library, std::string_view operation, WorkspaceTerm term) {
  std::string name(operation);
  std::replace(name.begin(), name.end(), ' ', '_');
  return fmt::format("phi.{}.{}.{}", to_string(library), name, to_string(term));
}

}  // namespace memfathom

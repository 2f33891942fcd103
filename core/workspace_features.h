// Workspace features: the sizes of a library call from which a fitted model tells its workspace.
#pragma once

#include <array>
#include <string>
#include <string_view>

#include "core/workspace.h"

namespace memfathom {

// kLowered is the matrix an explicit convolution would build (im2col); for a transform it is the
// complex spectrum.
enum WorkspaceTerm {
  kTermConstant,
  kTermInput,
  kTermOutput,
  kTermWeights,
  kTermLowered,
  kWorkspaceTermCount
};
using WorkspaceFeatures =
    std::array<double, kWorkspaceTermCount>;  // kTermConstant is 1, the others are bytes

const char* to_string(WorkspaceTerm term);  // "constant", "input", "output", "weights", "lowered"

WorkspaceFeatures features_of(const ConvolutionQuery& query);
WorkspaceFeatures features_of(const FftQuery& query);

// The operation under which requests of a query are fitted: "convolution forward", "rfft2",
// "irfft2", "fft2". Kernels of one point are "pointwise convolution ...": they run as plain matrix
// products, which ask for little or nothing.
std::string operation_of(const ConvolutionQuery& query);
std::string operation_of(const FftQuery& query);

// "phi.cudnn.convolution_forward.input".
std::string phi_name(Library library, std::string_view operation, WorkspaceTerm term);

// Bytes = sum of phi x feature, templated so that Ceres and the estimator run the same code.
template <typename T>
T predict_workspace(const WorkspaceFeatures& features, const T* phi) {
  T bytes(0.0);
  for (int term = 0; term < kWorkspaceTermCount; ++term)
    bytes += phi[term] * features[static_cast<std::size_t>(term)];
  return bytes;
}

}  // namespace memfathom

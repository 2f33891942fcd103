#include "core/fitted_workspaces.h"

#include <algorithm>
#include <cmath>

namespace memfathom {
namespace {

// "phi.cudnn.convolution_forward.input" without its last component.
std::string model_key(const std::string& coefficient) {
  return coefficient.substr(0, coefficient.rfind('.'));
}

Bytes evaluate(const WorkspaceFeatures& features, const WorkspaceFeatures& phi) {
  constexpr double kLargest = 1e18;  // extreme shapes must not overflow the conversion
  return Bytes{static_cast<std::int64_t>(
      std::clamp(std::round(predict_workspace(features, phi.data())), 0.0, kLargest))};
}

}  // namespace

FittedWorkspaces::FittedWorkspaces(const Calibration& calibration, Library convolutions,
                                   Library transforms, const WorkspaceModel* fallback)
    : convolutions_(convolutions), transforms_(transforms), fallback_(fallback) {
  for (const Coefficient& coefficient : calibration.coefficients) {
    if (coefficient.name.rfind("phi.", 0) != 0) continue;
    WorkspaceFeatures& phi = models_[model_key(coefficient.name)];
    const std::string term = coefficient.name.substr(coefficient.name.rfind('.') + 1);
    for (int t = 0; t < kWorkspaceTermCount; ++t) {
      if (term == to_string(static_cast<WorkspaceTerm>(t)))
        phi[static_cast<std::size_t>(t)] = coefficient.value;
    }
  }
}

const WorkspaceFeatures* FittedWorkspaces::model_of(Library library,
                                                    const std::string& operation) const {
  const auto found = models_.find(model_key(phi_name(library, operation, kTermConstant)));
  return found == models_.end() ? nullptr : &found->second;
}

WorkspaceSize FittedWorkspaces::convolution(const ConvolutionQuery& query) const {
  if (const WorkspaceFeatures* phi = model_of(convolutions_, operation_of(query))) {
    return {evaluate(features_of(query), *phi), Source::kFitted};
  }
  return fallback_ != nullptr ? fallback_->convolution(query) : WorkspaceSize{};
}

WorkspaceSize FittedWorkspaces::fft(const FftQuery& query) const {
  if (const WorkspaceFeatures* phi = model_of(transforms_, operation_of(query))) {
    return {evaluate(features_of(query), *phi), Source::kFitted};
  }
  return fallback_ != nullptr ? fallback_->fft(query) : WorkspaceSize{};
}

WorkspaceSize FittedWorkspaces::attention(const AttentionQuery& query) const {
  return fallback_ != nullptr ? fallback_->attention(query) : WorkspaceSize{};
}

}  // namespace memfathom

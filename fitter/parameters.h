// Parameters: the vector that the solver moves; the constants first, then the factors that only
// diagnose.
#pragma once

#include <array>
#include <cstddef>
#include <limits>

#include "core/predictor.h"

namespace memfathom {

// Constants of every job (context, framework) enter every device total together, so the solver sees
// their sum, the base; fit.cc tells them apart. Each of the others, the modules, is a parameter.
inline constexpr std::size_t kModuleCount = kConstantCount - kAlwaysCount;

enum Parameter {
  kBase,
  kFirstModule,
  kSolvedConstants = kFirstModule + static_cast<int>(kModuleCount),
  kTheta = kSolvedConstants,  // kThetaCount factors on groups of the peak
  kThetaReplay = kTheta + static_cast<int>(kThetaCount),  // one factor on the whole reserved peak
  kPerLayer,                                              // bytes for every layer
  kParameterCount
};

// Where the constant of a module's parameter stands in kLibraryConstants.
constexpr std::size_t constant_of(int parameter) {
  return static_cast<std::size_t>(parameter - kFirstModule) + kAlwaysCount;
}
constexpr const LibraryConstant& module_of(int parameter) {
  return kLibraryConstants[constant_of(parameter)];
}

template <typename T>
using PerParameter = std::array<T, kParameterCount>;

// The neutral value of a parameter: what it is when the replay explains everything.
constexpr double neutral(int parameter) {
  return parameter >= kTheta && parameter <= kThetaReplay ? 1.0 : 0.0;
}

// Bytes (or 1) of one step of the solver's variable: keeps all variables near one, whatever their
// unit.
constexpr double unit_of(int parameter) {
  if (parameter < kSolvedConstants) return 1 << 28;
  return parameter == kPerLayer ? 1 << 20 : 1.0;
}

// A normal prior; an infinite sigma is none.
struct Prior {
  double mean = 0;
  double sigma = std::numeric_limits<double>::infinity();
};

}  // namespace memfathom

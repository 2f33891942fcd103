// Parameters: the vector that the solver moves; the constants first, then the factors that only
// diagnose.
#pragma once

#include <array>
#include <limits>

#include "core/predictor.h"

namespace memfathom {

// Context and framework enter every device total together, so the solver sees their sum; fit.cc
// tells them apart.
enum Parameter {
  kBase,
  kCublas,
  kCudnn,
  kCufft,
  kSolvedConstants,
  kTheta = kSolvedConstants,  // kThetaCount factors on groups of the peak
  kThetaReplay = kTheta + static_cast<int>(kThetaCount),  // one factor on the whole reserved peak
  kPerLayer,                                              // bytes for every layer
  kParameterCount
};

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

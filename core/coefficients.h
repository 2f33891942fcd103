// Coefficients: the stable names of what a fit learns, what each means in words, and their
// documented defaults.
#pragma once

#include <array>
#include <string>
#include <string_view>

#include "core/calibration.h"
#include "core/predictor.h"

namespace memfathom {

// "context", "framework", "module.cublas", "module.cudnn", "module.cufft".
const char* constant_name(ConstantIndex index);
// "theta.states", "theta.activations", ...
const char* theta_name(ThetaIndex index);

// What a coefficient is physically, in one phrase: "CUDA context: driver structures, ...".
std::string describe_coefficient(std::string_view coefficient);

// What is assumed of a GPU nobody calibrated, with how far off that may be. Bytes.
struct DefaultConstant {
  double value;
  double standard_error;
};
DefaultConstant default_constant(ConstantIndex index, std::string_view framework);

using Constants = std::array<double, kConstantCount>;

// The constants of a calibration, ready for predict_device(); what it lacks is filled from the
// defaults.
Constants constants_of(const Calibration& calibration);
Constants default_constants(std::string_view framework);

}  // namespace memfathom

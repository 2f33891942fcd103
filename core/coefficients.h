// Coefficients: the stable names of what a fit learns, what each means in words, and their
// documented defaults.
#pragma once

#include <array>
#include <string>
#include <string_view>

#include "core/calibration.h"
#include "core/predictor.h"

namespace memfathom {

// "theta.states", "theta.activations", ...
const char* theta_name(ThetaIndex index);

// What a coefficient is physically, in one phrase: "CUDA context: driver structures, ...".
std::string describe_coefficient(std::string_view coefficient);

const DefaultConstant& default_of(const LibraryConstant& constant, std::string_view framework);

// One value per row of kLibraryConstants, in bytes.
using Constants = std::array<double, kConstantCount>;

// The constants of a calibration, ready for predict_device(); what it lacks is filled from the
// defaults.
Constants constants_of(const Calibration& calibration);
Constants default_constants(std::string_view framework);

}  // namespace memfathom

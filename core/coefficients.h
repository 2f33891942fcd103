// Coefficients: the stable names of fitted coefficients, their descriptions and documented
// defaults.
#pragma once

#include <array>
#include <string>
#include <string_view>

#include "core/calibration.h"
#include "core/predictor.h"

namespace memfathom {

// "theta.states", "theta.activations", ...
const char* theta_name(ThetaIndex index);

// The physical meaning of a coefficient in one phrase: "CUDA context: driver structures, ...".
std::string describe_coefficient(std::string_view coefficient);

const DefaultConstant& default_of(const LibraryConstant& constant, std::string_view framework);

// One value per row of kLibraryConstants, in bytes.
using Constants = std::array<double, kConstantCount>;

// The constants of a calibration for predict_device(); missing ones are set to the defaults.
Constants constants_of(const Calibration& calibration);
Constants default_constants(std::string_view framework);

}  // namespace memfathom

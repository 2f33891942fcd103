// Reliability plot: covered shares against the levels that intervals promise, as SVG.
#pragma once

#include <string>
#include <vector>

#include "estimator/accuracy/accuracy.h"

namespace memfathom {

std::string reliability_plot(const std::vector<ReliabilityPoint>& points);

}  // namespace memfathom

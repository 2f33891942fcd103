// Noise: how far measurements of one size scatter; estimated from the data, so that "outlier" has a meaning.
#pragma once

#include <span>
#include <vector>

namespace memfathom {

// sigma^2 = page^2 / 12 + relative^2 (size^2 + knee^2): relative for large jobs, absolute below the knee.
struct Noise {
  double relative = 0;
  double knee = 0;      // bytes
  double quantum = 0;   // bytes
  double sigma(double bytes) const;
};

// `sizes` are the measured bytes, `errors` predicted - measured. The knee is the most likely one of a grid; the scale is
// the median absolute deviation, which half of the rows may be wrong without moving far.
Noise estimate_noise(std::span<const double> sizes, std::span<const double> errors, double quantum);

// The median; 0 of nothing. Takes a copy because it reorders.
double median(std::vector<double> values);

}  // namespace memfathom

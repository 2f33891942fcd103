// Noise: how far measurements of one size scatter; estimated from the data, so that "outlier" has a
// meaning.
#pragma once

#include <array>
#include <vector>

namespace memfathom {

// sigma^2 = page^2 / 12 + relative^2 (size^2 + knee^2): relative for large jobs, absolute below the
// knee.
struct NoiseScale {
  double relative = 0;
  double knee = 0;  // bytes
};

// Jobs that load the same libraries share a scale: modules load lazily, so their rows scatter more
// than bare ones.
struct Noise {
  static constexpr int kClasses = 5;  // FitRow::noise_class()

  NoiseScale all;
  std::array<NoiseScale, kClasses> by_class;
  double quantum = 0;  // bytes

  double sigma(double bytes, int noise_class) const;
};

struct NoiseReading {
  double size = 0;   // measured bytes
  double error = 0;  // predicted - measured
  int noise_class = 0;
};

// The knee is the most likely one of a grid; the scale is the median absolute deviation, which
// nearly half of the rows may be wrong without moving far. A class with
// few rows takes the larger of its own scale and that of all.
Noise estimate_noise(const std::vector<NoiseReading>& readings, double quantum);

// The knees worth trying for readings up to `largest` bytes, from 0 on.
std::vector<double> candidate_knees(double largest);

// How badly a knee, with the scale that suits it best, explains the readings: minus the logarithm
// of their likelihood, in which a gross error counts like a tail.
double negative_log_likelihood(double knee, const std::vector<NoiseReading>& readings,
                               double quantum);

}  // namespace memfathom

#include "fitter/noise.h"

#include <algorithm>
#include <cmath>

namespace memfathom {
namespace {

constexpr double kMadToSigma = 1.4826;  // of a normal distribution
constexpr double kTail = 5;             // beyond it a row says nothing about the scale of the others
constexpr int kGrid = 12;

Noise with_knee(double knee, std::span<const double> sizes, std::span<const double> errors, double quantum) {
  std::vector<double> scaled(sizes.size());
  for (std::size_t i = 0; i < sizes.size(); ++i) scaled[i] = std::abs(errors[i]) / std::hypot(sizes[i], knee);
  return {kMadToSigma * median(std::move(scaled)), knee, quantum};
}

double surprise(const Noise& noise, std::span<const double> sizes, std::span<const double> errors) {
  double sum = 0;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    const double sigma = noise.sigma(sizes[i]);
    sum += std::log(sigma) + std::min(std::abs(errors[i]) / sigma, kTail);
  }
  return sum;
}

}  // namespace

double Noise::sigma(double bytes) const {
  const double page = quantum / std::sqrt(12.0);
  return std::hypot(page, relative * std::hypot(bytes, knee));
}

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  if (values.size() % 2 == 1) return *middle;
  return 0.5 * (*middle + *std::max_element(values.begin(), middle));
}

Noise estimate_noise(std::span<const double> sizes, std::span<const double> errors, double quantum) {
  Noise best = with_knee(0, sizes, errors, quantum);
  double least = surprise(best, sizes, errors);
  const double largest = sizes.empty() ? 0 : *std::max_element(sizes.begin(), sizes.end());
  for (int i = 0; i < kGrid; ++i) {
    const Noise candidate = with_knee(std::ldexp(largest, 2 - i), sizes, errors, quantum);
    const double score = surprise(candidate, sizes, errors);
    if (score < least) {
      least = score;
      best = candidate;
    }
  }
  return best;
}

}  // namespace memfathom

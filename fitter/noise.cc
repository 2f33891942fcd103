#include "fitter/noise.h"

#include <algorithm>
#include <cmath>

#include "core/quantile.h"

namespace memfathom {
namespace {

constexpr double kMadToSigma = 1.4826;  // of a normal distribution
constexpr double kTail = 5;  // beyond it a row says nothing about the scale of the others
constexpr int kGrid = 12;
constexpr std::size_t kMinRowsPerNoiseClass = 12;

double sigma_of(const NoiseScale& scale, double quantum, double bytes) {
  const double page = quantum / std::sqrt(12.0);
  return std::hypot(page, scale.relative * std::hypot(bytes, scale.knee));
}

NoiseScale with_knee(double knee, const std::vector<NoiseReading>& readings) {
  std::vector<double> scaled;
  scaled.reserve(readings.size());
  for (const NoiseReading& r : readings)
    scaled.push_back(std::abs(r.error) / std::hypot(r.size, knee));
  return {kMadToSigma * median(std::move(scaled)), knee};
}

double surprise(const NoiseScale& scale, double quantum,
                const std::vector<NoiseReading>& readings) {
  double sum = 0;
  for (const NoiseReading& r : readings) {
    const double sigma = sigma_of(scale, quantum, r.size);
    sum += std::log(sigma) + std::min(std::abs(r.error) / sigma, kTail);
  }
  return sum;
}

NoiseScale scale_of(const std::vector<NoiseReading>& readings, double quantum) {
  double largest = 0;
  for (const NoiseReading& r : readings) largest = std::max(largest, r.size);
  double best = 0;
  double least = negative_log_likelihood(best, readings, quantum);
  for (const double knee : candidate_knees(largest)) {
    const double score = negative_log_likelihood(knee, readings, quantum);
    if (score < least) {
      least = score;
      best = knee;
    }
  }
  return with_knee(best, readings);
}

// Few rows may agree by chance; they are never believed to be better than the rest.
NoiseScale cautious(const std::vector<NoiseReading>& few, const NoiseScale& all) {
  const NoiseScale own = with_knee(all.knee, few);
  return own.relative > all.relative ? own : all;
}

}  // namespace

double Noise::sigma(double bytes, int noise_class) const {
  return sigma_of(by_class[static_cast<std::size_t>(noise_class)], quantum, bytes);
}

std::vector<double> candidate_knees(double largest) {
  std::vector<double> knees{0};
  for (int i = kGrid - 1; i >= 0; --i) knees.push_back(std::ldexp(largest, 2 - i));
  return knees;
}

double negative_log_likelihood(double knee, const std::vector<NoiseReading>& readings,
                               double quantum) {
  return surprise(with_knee(knee, readings), quantum, readings);
}

Noise estimate_noise(const std::vector<NoiseReading>& readings, double quantum) {
  Noise noise;
  noise.quantum = quantum;
  noise.all = scale_of(readings, quantum);
  for (int noise_class = 0; noise_class < Noise::kClasses; ++noise_class) {
    std::vector<NoiseReading> own;
    for (const NoiseReading& r : readings) {
      if (r.noise_class == noise_class) own.push_back(r);
    }
    noise.by_class[static_cast<std::size_t>(noise_class)] =
        own.size() >= kMinRowsPerNoiseClass ? scale_of(own, quantum) : cautious(own, noise.all);
  }
  return noise;
}

}  // namespace memfathom

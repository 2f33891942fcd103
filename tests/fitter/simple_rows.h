// Rows with a known constant, for tests that need no simulated GPU.
#pragma once

#include <fmt/format.h>

#include <random>
#include <vector>

#include "core/coefficients.h"
#include "fitter/fit.h"

namespace memfathom::testing {

constexpr double kMiB = 1 << 20;

inline Bytes mib(double count) { return Bytes{static_cast<std::int64_t>(count * kMiB)}; }

struct Simple {
  int rows = 60;
  double base_mib = 1000;
  double cudnn_mib = 0;  // added by every third row, which then uses cuDNN
  double noise_mib = 2;
  std::uint64_t seed = 1;
};

inline std::vector<FitRow> simple_rows(const Simple& simple = {}) {
  std::mt19937_64 random(simple.seed);
  std::normal_distribution<double> normal;
  std::uniform_real_distribution<double> size(100, 8000);
  std::vector<FitRow> rows;
  for (int i = 0; i < simple.rows; ++i) {
    FitRow row;
    row.id = fmt::format("row-{}", i);
    row.family = i % 3 == 0 ? "conv" : i % 3 == 1 ? "mlp" : "pointwise";
    const double reserved = std::floor(size(random) / 2) * 2;
    row.replay.reserved_peak = mib(reserved);
    row.replay.allocated_peak = mib(reserved * 0.9);
    row.replay.states = mib(reserved * 0.3);
    row.replay.activations = mib(reserved * 0.6);
    row.replay.uses_cublas = i % 3 != 2;
    row.replay.uses_cudnn = i % 3 == 0 && simple.cudnn_mib > 0;
    row.replay.layers = 4 + i % 7;
    row.measured = mib(simple.base_mib + (row.replay.uses_cudnn ? simple.cudnn_mib : 0) + reserved +
                       simple.noise_mib * normal(random));
    rows.push_back(row);
  }
  return rows;
}

inline FitOptions simple_options() {
  FitOptions options;
  options.name = "test";
  options.environment.framework = "memfathom";
  options.environment.architecture = "sm_80";
  return options;
}

inline const Coefficient& coefficient(const FitSummary& summary, const std::string& name) {
  for (const Coefficient& c : summary.calibration().coefficients) {
    if (c.name == name) return c;
  }
  throw std::out_of_range("no coefficient " + name);
}

inline FitSummary fit_rows(const std::vector<FitRow>& rows,
                           const FitOptions& options = simple_options(),
                           const Calibration* parent = nullptr) {
  return fit(rows, WorkspaceFit{}, options, parent);
}

}  // namespace memfathom::testing

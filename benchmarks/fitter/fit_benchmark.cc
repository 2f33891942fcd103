// How a fit grows with its rows: linear from 1,000 to 100,000, and 10,000 within two seconds.
#include <benchmark/benchmark.h>

#include <random>

#include "fitter/fit.h"

namespace memfathom {
namespace {

std::vector<FitRow> rows_of(std::int64_t count) {
  std::mt19937_64 random(1);
  std::normal_distribution<double> normal;
  std::uniform_real_distribution<double> size(100, 40000);
  constexpr double kMiB = 1 << 20;
  std::vector<FitRow> rows;
  for (std::int64_t i = 0; i < count; ++i) {
    FitRow row;
    row.id = std::to_string(i);
    row.family = "family-" + std::to_string(i % 6);
    const double reserved = size(random) * kMiB;
    row.replay.reserved_peak = Bytes{static_cast<std::int64_t>(reserved)};
    row.replay.allocated_peak = Bytes{static_cast<std::int64_t>(0.9 * reserved)};
    row.replay.states = Bytes{static_cast<std::int64_t>(0.3 * reserved)};
    row.replay.activations =
        Bytes{static_cast<std::int64_t>(0.6 * reserved * size(random) / 40000)};
    row.replay.uses_cublas = i % 6 != 0;
    row.replay.uses_cudnn = i % 6 == 1;
    row.replay.uses_cufft = i % 6 == 2;
    row.replay.layers = i % 40;
    const double modules = (row.replay.uses_cublas ? 80 : 0) + (row.replay.uses_cudnn ? 300 : 0);
    const double outlier = i % 20 == 0 ? 1.3 : 1;
    row.measured = Bytes{static_cast<std::int64_t>(
        outlier * (reserved + (900 + modules + 3 * normal(random)) * kMiB))};
    rows.push_back(std::move(row));
  }
  return rows;
}

void BM_Fit(benchmark::State& state) {
  const std::vector<FitRow> rows = rows_of(state.range(0));
  FitOptions options;
  options.environment.framework = "memfathom";
  for (auto _ : state) benchmark::DoNotOptimize(fit(rows, WorkspaceFit{}, options).usable());
  state.SetComplexityN(state.range(0));
}
BENCHMARK(BM_Fit)
    ->RangeMultiplier(10)
    ->Range(1000, 100000)
    ->Unit(benchmark::kMillisecond)
    ->Complexity(benchmark::oN);

void BM_FitWorkspaces(benchmark::State& state) {
  std::mt19937_64 random(1);
  std::uniform_real_distribution<double> size(1e5, 1e9);
  std::vector<WorkspaceRow> rows;
  for (std::int64_t i = 0; i < state.range(0); ++i) {
    const WorkspaceFeatures features{1, size(random), size(random), size(random), size(random)};
    rows.push_back(
        {Library::kCudnn, "convolution forward", features,
         Bytes{static_cast<std::int64_t>(features[kTermInput] + features[kTermOutput])}});
  }
  for (auto _ : state)
    benchmark::DoNotOptimize(fit_workspaces(rows, FitOptions{}).coefficients.size());
  state.SetComplexityN(state.range(0));
}
BENCHMARK(BM_FitWorkspaces)
    ->RangeMultiplier(10)
    ->Range(1000, 100000)
    ->Unit(benchmark::kMillisecond)
    ->Complexity(benchmark::oN);

}  // namespace
}  // namespace memfathom

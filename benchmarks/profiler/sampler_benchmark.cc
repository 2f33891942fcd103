// The sampler's cost: what one reading of the resident set takes, which share of a core that is at
// the probe's interval (target: below 1 %), and the processor time of work beside a sampler.
#include <benchmark/benchmark.h>

#include <chrono>
#include <ctime>
#include <optional>
#include <vector>

#include "profiler/rss_meter.h"
#include "profiler/sampler.h"

namespace memfathom {
namespace {

constexpr std::chrono::milliseconds kInterval{5};  // as profiler/protocol.cc has it

double process_seconds() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

void rss_reading(benchmark::State& state) {
  const RssMeter meter;
  const double before = process_seconds();
  for (auto _ : state) benchmark::DoNotOptimize(meter.used());
  const double each = (process_seconds() - before) / static_cast<double>(state.iterations());
  state.counters["percent_of_a_core"] =
      100 * each / std::chrono::duration<double>(kInterval).count();
}
BENCHMARK(rss_reading)->Unit(benchmark::kMicrosecond);

// Enough work for some readings; its processor time with a sampler, the sampler's own included,
// against that without.
void work(benchmark::State& state) {
  const RssMeter meter;
  std::vector<double> values(1 << 16, 1.0);
  std::optional<Sampler> sampler;
  if (state.range(0) != 0) sampler.emplace(meter, kInterval);
  for (auto _ : state) {
    for (int turn = 0; turn < 1000; ++turn) {
      for (double& value : values) value = value * 0.999 + 0.001;
      benchmark::DoNotOptimize(values.data());
    }
  }
}
BENCHMARK(work)->ArgName("sampled")->Arg(0)->Arg(1)->MeasureProcessCPUTime()->Unit(
    benchmark::kMillisecond);

}  // namespace
}  // namespace memfathom

BENCHMARK_MAIN();

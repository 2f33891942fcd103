// The store at the size of a fleet's database: inserting a run of 100,000 samples (target: under 2
// s), and the lookups that `estimate` does on that database (target: under 1 ms each).
#include <benchmark/benchmark.h>

#include "db/store.h"
#include "tests/db/examples.h"
#include "tests/support/temporary_directory.h"

namespace memfathom {
namespace {

constexpr int kSamples = 100'000;
constexpr int kEnvironments = 200;

std::vector<Sample> many_samples(int count) {
  std::vector<Sample> samples;
  for (int i = 0; i < count; ++i) samples.push_back(examples::sample(i));
  return samples;
}

void insert_run(Store& store, const std::vector<Sample>& samples) {
  store.insert_samples(store.begin_run(examples::run_of(examples::a100())), samples);
}

void insert_samples(benchmark::State& state) {
  const std::vector<Sample> samples = many_samples(static_cast<int>(state.range(0)));
  for (auto _ : state) {
    state.PauseTiming();
    const TemporaryDirectory directory;
    Store store = Store::open(directory / "memfathom.db", Store::Mode::kReadWrite);
    state.ResumeTiming();
    insert_run(store, samples);
  }
  state.SetItemsProcessed(state.iterations() * state.range(0));
}
BENCHMARK(insert_samples)
    ->RangeMultiplier(10)
    ->Range(1'000, kSamples)
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime();

// Each sample in a transaction of its own, synced to the disk, as calibrate stores them.
void insert_durable_sample(benchmark::State& state) {
  const TemporaryDirectory directory;
  Store store = Store::open(directory / "memfathom.db", Store::Mode::kReadWrite);
  const std::string run = store.begin_run(examples::run_of(examples::a100()));
  int i = 0;
  for (auto _ : state) store.insert_sample(run, examples::sample(i++));
}
BENCHMARK(insert_durable_sample)->Unit(benchmark::kMicrosecond)->UseRealTime();

// A database of 100,000 samples and the calibrations of 200 environments, made once for all
// lookups.
class FleetDatabase : public benchmark::Fixture {
 public:
  void SetUp(benchmark::State&) override {
    if (directory_) return;
    directory_ = std::make_unique<TemporaryDirectory>();
    Store store = Store::open(path(), Store::Mode::kReadWrite);
    insert_run(store, many_samples(kSamples));
    Store::Batch batch(store);
    for (int i = 0; i < kEnvironments; ++i) {
      store.save_calibration(
          examples::calibration(environment(i), "2026-11-16T12:00:00Z", 24, 500));
    }
    batch.commit();
  }
  static std::filesystem::path path() { return *directory_ / "memfathom.db"; }
  static Environment environment(int i) {
    Environment e = examples::a100();
    e.driver = fmt::format("550.{}", i % 10);
    e.gpu = fmt::format("{} {}", e.gpu, i / 10);
    return e;
  }

 private:
  static inline std::unique_ptr<TemporaryDirectory> directory_;
};

BENCHMARK_DEFINE_F(FleetDatabase, calibration_for_environment)(benchmark::State& state) {
  const Store store = Store::open(path(), Store::Mode::kReadOnly);
  int i = 0;
  for (auto _ : state)
    benchmark::DoNotOptimize(store.calibration_for(environment(i++ % kEnvironments)));
}
BENCHMARK_REGISTER_F(FleetDatabase, calibration_for_environment)->Unit(benchmark::kMicrosecond);

BENCHMARK_DEFINE_F(FleetDatabase, newest_of_device)(benchmark::State& state) {
  const Store store = Store::open(path(), Store::Mode::kReadOnly);
  int i = 0;
  for (auto _ : state)
    benchmark::DoNotOptimize(store.newest_of_device(environment(i++ % kEnvironments)));
}
BENCHMARK_REGISTER_F(FleetDatabase, newest_of_device)->Unit(benchmark::kMicrosecond);

BENCHMARK_DEFINE_F(FleetDatabase, find_calibration_by_name)(benchmark::State& state) {
  const Store store = Store::open(path(), Store::Mode::kReadOnly);
  for (auto _ : state) benchmark::DoNotOptimize(store.find_calibration("a100-40gb/pytorch"));
}
BENCHMARK_REGISTER_F(FleetDatabase, find_calibration_by_name)->Unit(benchmark::kMicrosecond);

// Opening included: what a single `memfathom estimate` pays.
BENCHMARK_DEFINE_F(FleetDatabase, open_and_look_up)(benchmark::State& state) {
  for (auto _ : state) {
    const Store store = Store::open(path(), Store::Mode::kReadOnly);
    benchmark::DoNotOptimize(store.calibration_for(environment(7)));
  }
}
BENCHMARK_REGISTER_F(FleetDatabase, open_and_look_up)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace memfathom

BENCHMARK_MAIN();

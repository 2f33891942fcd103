// The caching allocator's speed: recorded training steps, a million live blocks, growth with their
// number, each beside the plain std::set version that the tests use as reference.
#include <benchmark/benchmark.h>

#include <filesystem>
#include <random>
#include <string>
#include <vector>

#include "kernels/memory/allocator/arithmetic_segments.h"
#include "kernels/memory/allocator/caching_allocator.h"
#include "kernels/memory/trace/trace.h"
#include "tests/kernels/memory/allocator/reference_allocator.h"

namespace memfathom {
namespace {

// The two allocators under one face; what they hand out is `Handle`.
struct Caching {
  using Handle = Allocation;
  ArithmeticSegments source;
  CachingAllocator allocator{source};

  Handle allocate(std::int64_t bytes, int stream) {
    return allocator.allocate(Bytes{bytes}, stream);
  }
  void free(const Handle& handle) { allocator.free(handle); }
};

struct StdSet {
  using Handle = testing::ReferenceAllocator::Block*;
  ArithmeticSegments source;
  testing::ReferenceAllocator allocator{source};

  Handle allocate(std::int64_t bytes, int stream) { return allocator.allocate(bytes, stream); }
  void free(Handle handle) { allocator.free(handle); }
};

template <class Subject>
void replay_events(const Trace& trace, Subject& subject,
                   std::vector<typename Subject::Handle>& live) {
  for (const Trace::Event& event : trace.events) {
    if (event.is_free()) {
      subject.free(live[event.slot]);
    } else {
      live[event.slot] = subject.allocate(event.bytes, event.stream);
    }
  }
}

// From an empty allocator to the end of the second iteration, again and again.
template <class Subject>
void oracle_traces(benchmark::State& state, const std::vector<Trace>& traces) {
  std::size_t events = 0;
  for (auto _ : state) {
    for (const Trace& trace : traces) {
      Subject subject;
      std::vector<typename Subject::Handle> live(trace.slots);
      replay_events(trace, subject, live);
      events += trace.events.size();
      benchmark::DoNotOptimize(live.data());
    }
  }
  state.SetItemsProcessed(static_cast<std::int64_t>(events));
}

std::int64_t random_size(std::mt19937_64& random) {
  return 512 * (1 + static_cast<std::int64_t>(random() % 128));  // up to 64 KiB: the small pool
}

// `range(0)` live blocks of random sizes; each step frees a random one and allocates another.
template <class Subject>
void live_blocks(benchmark::State& state) {
  const auto count = static_cast<std::size_t>(state.range(0));
  std::mt19937_64 random(1);
  Subject subject;
  std::vector<typename Subject::Handle> live;
  live.reserve(count);
  for (std::size_t i = 0; i < count; ++i) live.push_back(subject.allocate(random_size(random), 0));
  struct Step {
    std::uint32_t victim;
    std::int64_t bytes;
  };
  std::vector<Step> steps(1 << 20);
  for (Step& step : steps) {
    step = {static_cast<std::uint32_t>(random() % count), random_size(random)};
  }
  // Until the free blocks have found their steady number.
  for (const Step& step : steps) {
    subject.free(live[step.victim]);
    live[step.victim] = subject.allocate(step.bytes, 0);
  }
  std::size_t at = 0;
  for (auto _ : state) {
    const Step& step = steps[at++ & (steps.size() - 1)];
    subject.free(live[step.victim]);
    live[step.victim] = subject.allocate(step.bytes, 0);
  }
  state.SetItemsProcessed(2 * state.iterations());
  state.SetComplexityN(state.range(0));
}

std::vector<Trace> load_traces(const std::string& folder) {
  std::vector<Trace> traces;
  if (!std::filesystem::is_directory(folder)) return traces;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    traces.push_back(load_trace(entry.path().string()));
  }
  return traces;
}

void register_all(const std::vector<Trace>& traces) {
  if (!traces.empty()) {
    benchmark::RegisterBenchmark("oracle_traces/caching", [&traces](benchmark::State& state) {
      oracle_traces<Caching>(state, traces);
    });
    benchmark::RegisterBenchmark("oracle_traces/std_set", [&traces](benchmark::State& state) {
      oracle_traces<StdSet>(state, traces);
    });
  }
  benchmark::RegisterBenchmark("live_blocks/caching", live_blocks<Caching>)
      ->RangeMultiplier(10)
      ->Range(1000, 1000000)
      ->Complexity(benchmark::oLogN);
  benchmark::RegisterBenchmark("live_blocks/std_set", live_blocks<StdSet>)
      ->RangeMultiplier(10)
      ->Range(1000, 1000000)
      ->Complexity(benchmark::oLogN);
}

}  // namespace
}  // namespace memfathom

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  const std::vector<memfathom::Trace> traces = memfathom::load_traces(MEMFATHOM_TRACES);
  memfathom::register_all(traces);
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}

// What reading a trace costs, plain and compressed, and how it grows with its events.
#include <benchmark/benchmark.h>

#include <sstream>
#include <string>

#include "kernels/memory/trace/trace.h"

namespace memfathom {
namespace {

// Allocations of which every second is freed at once, with labels that repeat.
std::string trace_of(std::int64_t events, bool gzip) {
  std::ostringstream text;
  TraceWriter writer(text, gzip);
  for (std::int64_t i = 0; i < events; ++i) {
    TraceEvent event;
    event.phase = i < events / 2 ? "forward" : "backward";
    event.name = i % 4 < 2 ? "aten::addmm" : "aten::gelu";
    event.module = "layers." + std::to_string(i % 32);
    event.op = i % 2 == 0 ? TraceOp::kAlloc : TraceOp::kFree;
    event.id = i / 2;
    event.bytes = Bytes{512 * (1 + i % 4096)};
    writer.write(event);
  }
  writer.finish();
  return text.str();
}

void read(benchmark::State& state, bool gzip) {
  const std::string text = trace_of(state.range(0), gzip);
  for (auto _ : state) {
    std::istringstream input(text);
    benchmark::DoNotOptimize(read_trace(input, "benchmark").events.size());
  }
  state.SetItemsProcessed(state.iterations() * state.range(0));
  state.SetComplexityN(state.range(0));
}

BENCHMARK_CAPTURE(read, plain, false)->RangeMultiplier(10)->Range(100, 100000)->Complexity();
BENCHMARK_CAPTURE(read, gzip, true)->RangeMultiplier(10)->Range(100, 100000)->Complexity();

}  // namespace
}  // namespace memfathom

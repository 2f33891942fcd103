// What reading a document costs, as JSON and as YAML, and how it grows with its length.
#include <benchmark/benchmark.h>

#include <string>

#include "core/document.h"

namespace memfathom {
namespace {

// A list of layers, as a job would have them: the same text is both formats.
std::string stack_of(std::int64_t layers) {
  std::string text = R"({"model": {"input": {"shape": [3, 224, 224]}, "layers": [)";
  for (std::int64_t i = 0; i < layers; ++i) {
    text += i == 0 ? "\n" : ",\n";
    text += R"({"type": "conv2d", "in": 64, "out": 64, "kernel": 3, "padding": [1, 1]})";
  }
  return text + "]}, \"training\": {\"batch_size\": 16, \"precision\": \"bf16\"}}";
}

template <Node (*parse)(std::string_view, const std::string&, int, const DocumentLimits&)>
void layers(benchmark::State& state) {
  const std::string text = stack_of(state.range(0));
  for (auto _ : state) benchmark::DoNotOptimize(parse(text, "benchmark", 1, {}));
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(text.size()));
  state.SetComplexityN(state.range(0));
}

BENCHMARK(layers<parse_json>)->Name("json")->RangeMultiplier(10)->Range(1, 10000)->Complexity();
BENCHMARK(layers<parse_yaml>)->Name("yaml")->RangeMultiplier(10)->Range(1, 10000)->Complexity();

}  // namespace
}  // namespace memfathom

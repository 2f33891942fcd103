// The device suite under Google Benchmark: what every layer of the suite takes on a device, with
// the contract's counters and a memory manager, so that upstream's tools read it.
//
//     device_benchmark --device=cuda:0 [--scale=tiny|small|full] [--benchmark_...]
//
// Each iteration is a probe in a process of its own. `memfathom bench run` is the same suite with
// baselines, resumption and attribution.
#include <benchmark/benchmark.h>

#include <cstdio>
#include <filesystem>
#include <optional>
#include <string>

#include "cli/bench/cases.h"
#include "cli/calibrate/estimator_runner.h"
#include "core/error.h"

namespace {

using namespace memfathom;

constexpr std::chrono::seconds kProbeLimit{300};

struct Options {
  std::string device = "cpu";
  std::string scale;
};

// Takes our own flags out of the arguments.
Options take_options(int* argc, char** argv) {
  Options options;
  int kept = 1;
  for (int i = 1; i < *argc; ++i) {
    const std::string_view word = argv[i];
    if (word.starts_with("--device=")) {
      options.device = word.substr(word.find('=') + 1);
    } else if (word.starts_with("--scale=")) {
      options.scale = word.substr(word.find('=') + 1);
    } else {
      argv[kept++] = argv[i];
    }
  }
  *argc = kept;
  return options;
}

ProbeProgram probe_program() {
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe");
  return std::getenv("MEMFATHOM_PROBE") != nullptr
             ? own_probe_program()
             : ProbeProgram{self.parent_path() / "memfathom", {"__probe"}};
}

// What upstream shows as memory is what the device held for the benchmark.
class DeviceMemory final : public benchmark::MemoryManager {
 public:
  // Google Benchmark's Stop took a pointer until 1.6, both in 1.7, a reference since 1.8.
  // NOLINTBEGIN(modernize-use-override)
  void Start() { peak_ = 0; }
  void Stop(Result* result) { Stop(*result); }
  void Stop(Result& result) {
    result.num_allocs = allocations_;
    result.max_bytes_used = peak_;
  }
  // NOLINTEND(modernize-use-override)
  void record(std::int64_t peak, std::int64_t allocations) {
    peak_ = std::max(peak_, peak);
    allocations_ = allocations;
  }

 private:
  std::int64_t peak_ = 0;
  std::int64_t allocations_ = 0;  // workspaces that libraries asked for
};

void run_case(benchmark::State& state, const DeviceCase& what, const ProbeRequest& request,
              DeviceMemory& memory) {
  for ([[maybe_unused]] auto iteration : state) {
    const ProbeOutcome outcome = run_probe(probe_program(), request, kProbeLimit);
    const BenchRow row = row_of(outcome, what.startup);
    if (!row.error.empty()) {
      state.SkipWithError(row.error.c_str());
      return;
    }
    const Sample& sample = *outcome.reply->sample;
    state.SetIterationTime(sample.seconds_per_step.value_or(0));
    for (const auto& [name, bytes] : row.counters)
      state.counters[name] = static_cast<double>(bytes.count());
    memory.record(sample.device_peak.value_or(Bytes{}).count(),
                  static_cast<std::int64_t>(row.operations.size()));
  }
  state.SetLabel(what.label);
}

void add_context(const Environment& environment) {
  const auto add = [](const char* name, const std::string& value) {
    if (!value.empty()) benchmark::AddCustomContext(name, value);
  };
  add("gpu", environment.gpu);
  add("driver", environment.driver);
  add("cuda", environment.cuda);
  add("cublas", environment.cublas);
  add("cudnn", environment.cudnn);
  add("cufft", environment.cufft);
  add("framework", environment.framework);
}

int run(int argc, char** argv) {
  const Options options = take_options(&argc, argv);
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  ProbeRequest hello;
  hello.device = options.device;
  const ProbeOutcome there = run_probe(probe_program(), hello, kProbeLimit);
  if (!there.reply)
    throw Error(ErrorKind::kEnvironment, options.device + " cannot be used: " + there.note);
  add_context(there.reply->environment);

  DeviceMemory memory;
  const EstimatorRunner runner;
  for (const DeviceCase& what : device_cases(options.device, options.scale)) {
    ProbeRequest request = hello;
    request.workload = what.name;
    request.job = what.job;
    request.uses = what.startup.empty() ? runner.forecast(what.job).uses : what.uses;
    request.ceiling = Bytes{there.reply->memory_free.count() / 2};
    benchmark::RegisterBenchmark(what.name.c_str(),
                                 [what, request, &memory](benchmark::State& state) {
                                   run_case(state, what, request, memory);
                                 })
        ->Iterations(1)
        ->UseManualTime()
        ->Unit(benchmark::kMillisecond);
  }
  benchmark::RegisterMemoryManager(&memory);
  benchmark::RunSpecifiedBenchmarks();
  benchmark::RegisterMemoryManager(nullptr);
  benchmark::Shutdown();
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const memfathom::Error& error) {
    std::fprintf(stderr, "device_benchmark: %s\n", error.what());
    return 4;
  }
}

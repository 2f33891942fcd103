// What an estimate costs: the warm iteration of a dry run, the whole run, and how both grow.
//
// The yardstick is in the same run: `allocator_alone/...` allocates and frees what the warm
// iteration does, in its order, with no layer around it; docs/performance.md gives the ratios.
#include <benchmark/benchmark.h>

#include <atomic>
#include <ctime>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/document.h"
#include "estimator/advise/recommend.h"
#include "estimator/answer/estimate.h"
#include "estimator/job/read_job.h"
#include "estimator/models/presets.h"
#include "estimator/run/dry_run.h"
#include "kernels/devices/dry/dry_device.h"
#include "kernels/memory/allocator/caching_allocator.h"
#include "kernels/memory/allocator/forwarding_allocator.h"

namespace memfathom {
namespace {

// Of this thread: what other programs do on the machine does not count.
double cpu_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

Job job_of(const std::string& model, int batch, int length) {
  const std::string text =
      R"({"model":)" + model + R"(,"training":{"mode":"train","batch_size":)" +
      std::to_string(batch) +
      (length > 0 ? R"(,"sequence_length":)" + std::to_string(length) : std::string()) +
      R"(,"precision":"bf16","optimizer":"adamw","attention":"flash"}})";
  return read_job(parse_json(text, "benchmark"));
}

Job llama_7b() { return job_of(R"({"preset":"llama-2-7b"})", 4, 2048); }

Job llama_of(std::int64_t layers) {
  return job_of(
      R"({"config":{"model_type":"llama","hidden_size":4096,"intermediate_size":11008,"num_attention_heads":32,)"
      R"("num_key_value_heads":32,"vocab_size":32000,"max_position_embeddings":4096,"hidden_act":"silu",)"
      R"("tie_word_embeddings":false,"num_hidden_layers":)" +
          std::to_string(layers) + "}}",
      4, 2048);
}

// LoRA on a release of transformers in which each of its 14,848 experts is a module of its own.
Job deepseek_lora() {
  Job job = read_job(parse_yaml(
      "model: {preset: deepseek-v3}\ntraining: {batch_size: 1, sequence_length: 2048, precision: "
      "bf16, lora: {rank: 16, targets: all-linear}}",
      "benchmark"));
  job.training.settings.transformers = TransformersPolicy(Version{4, 50});
  return job;
}

// Passes everything on and remembers it from the last start() on.
class RecordingAllocator final : public ForwardingAllocator {
 public:
  struct Event {
    std::size_t id;
    Bytes bytes;  // 0: freed
  };

  using ForwardingAllocator::ForwardingAllocator;

  void start() {
    events_.clear();
    ids_.clear();
    count_ = 0;
  }
  const std::vector<Event>& events() const { return events_; }
  std::size_t count() const { return count_; }

  Allocation allocate(Bytes size, int stream) override {
    const Allocation allocation = ForwardingAllocator::allocate(size, stream);
    events_.push_back({count_, size});
    ids_[allocation.block] = count_++;
    return allocation;
  }
  void free(const Allocation& allocation) override {
    const auto known = ids_.find(allocation.block);
    if (known != ids_.end()) {
      events_.push_back({known->second, Bytes{}});
      ids_.erase(known);
    }
    ForwardingAllocator::free(allocation);
  }

 private:
  std::vector<Event> events_;
  std::unordered_map<std::uint32_t, std::size_t> ids_;
  std::size_t count_ = 0;
};

// The second iteration of a training job: everything is there, nothing is taken from the device.
void warm_iteration(benchmark::State& state, const Job& job) {
  for (auto _ : state) {
    DryDevice device;
    CachingAllocator allocator(device.memory());
    Session session(device, allocator, device.workspaces(), FrameworkPolicy{});
    double last = 0;
    double seconds = 0;
    int steps = 0;
    run_in(session, job, [&](std::string_view stage) {
      if (stage == "step" && ++steps == 2) seconds = cpu_seconds() - last;
      last = cpu_seconds();
    });
    state.SetIterationTime(seconds);
  }
}

// The same allocations and frees, and nothing else: what the allocator alone takes.
void allocator_alone(benchmark::State& state, const Job& job) {
  DryDevice device;
  CachingAllocator caching(device.memory());
  RecordingAllocator recording(caching);
  std::vector<RecordingAllocator::Event> events;
  std::size_t count = 0;
  {
    Session session(device, recording, device.workspaces(), FrameworkPolicy{});
    int steps = 0;
    run_in(session, job, [&](std::string_view stage) {
      if (stage == "step" && ++steps == 2) {
        events = recording.events();
        count = recording.count();
      }
      recording.start();
    });
  }
  std::vector<Allocation> blocks(count);
  std::vector<char> is_live(count, 0);
  const auto play = [&](CachingAllocator& allocator) {
    for (const RecordingAllocator::Event& event : events) {
      if (event.bytes.count() > 0) {
        blocks[event.id] = allocator.allocate(event.bytes);
        is_live[event.id] = 1;
      } else if (is_live[event.id] != 0) {
        allocator.free(blocks[event.id]);
        is_live[event.id] = 0;
      }
    }
    for (std::size_t id = 0; id < blocks.size(); ++id) {
      if (is_live[id] != 0) allocator.free(blocks[id]);
      is_live[id] = 0;
    }
  };
  CachingAllocator warm(device.memory());
  play(warm);
  for (auto _ : state) play(warm);
  state.counters["allocations"] = static_cast<double>(count);
}

// A name that is found as it is written, and one that is an alias, which every form is tried for.
void preset_by_name(benchmark::State& state, const char* name) {
  for (auto _ : state) benchmark::DoNotOptimize(preset_config(name));
}

void dry_run_by_layers(benchmark::State& state) {
  const Job job = llama_of(state.range(0));
  for (auto _ : state) benchmark::DoNotOptimize(run_dry(job, {}).allocated_peak);
  state.SetComplexityN(state.range(0));
}

void estimate_one(benchmark::State& state) {
  const Job job = llama_7b();
  for (auto _ : state) {
    const DryRun run = run_dry(job, {});
    benchmark::DoNotOptimize(make_estimate(job, run, {}).components.size());
  }
}

// Everything that `memfathom recommend` searches, for a job that is far from fitting.
void recommend_one(benchmark::State& state, const char* parallel) {
  const Node job = parse_yaml(
      std::string("model: {preset: llama-2-7b}\ntraining: {batch_size: 8, sequence_length: 2048, "
                  "precision: bf16}\ntarget: {memory: 24GiB}\nparallel: ") +
          parallel,
      "benchmark");
  std::atomic<std::int64_t> asked{0};
  const EstimateFunction answer = [&](const Job& changed, std::optional<Bytes> ceiling) {
    ++asked;
    EstimateContext context;
    context.capacity = changed.target.memory;
    DryRunOptions options;
    options.ceiling = ceiling;
    return make_estimate(changed, run_dry(changed, options), context);
  };
  for (auto _ : state) benchmark::DoNotOptimize(recommend(job, answer, {}).suggestions.size());
  state.counters["estimates"] =
      benchmark::Counter(static_cast<double>(asked), benchmark::Counter::kAvgIterations);
}

// A batch of jobs that differ in their batch size, one after the other.
void estimate_batch(benchmark::State& state) {
  std::vector<Job> jobs;
  for (std::int64_t i = 0; i < state.range(0); ++i)
    jobs.push_back(job_of(R"({"preset":"gpt2"})", static_cast<int>(1 + i % 64), 512));
  for (auto _ : state) {
    for (const Job& job : jobs) {
      const DryRun run = run_dry(job, {});
      benchmark::DoNotOptimize(make_estimate(job, run, {}).components.size());
    }
  }
  state.SetComplexityN(state.range(0));
}

void register_all() {
  static const Job llama = llama_7b();
  static const Job resnet = job_of(R"({"preset":"resnet50"})", 32, 0);
  static const Job experts = deepseek_lora();
  for (const auto& [name, job] : {std::pair<std::string, const Job*>{"llama-2-7b", &llama},
                                  {"resnet50", &resnet},
                                  {"deepseek-v3-lora", &experts}}) {
    const auto with = [job = job](void (*run)(benchmark::State&, const Job&)) {
      return [job, run](benchmark::State& state) { run(state, *job); };
    };
    benchmark::RegisterBenchmark(("warm_iteration/" + name).c_str(), with(warm_iteration))
        ->UseManualTime()
        ->Unit(benchmark::kMillisecond);
    benchmark::RegisterBenchmark(("allocator_alone/" + name).c_str(), with(allocator_alone))
        ->Unit(benchmark::kMillisecond);
  }
  benchmark::RegisterBenchmark("dry_run/llama_layers", dry_run_by_layers)
      ->RangeMultiplier(2)
      ->Range(8, 128)
      ->Unit(benchmark::kMillisecond)
      ->Complexity(benchmark::oN);
  for (const char* name : {"gpt2", "flan-t5-xxl", "vicuna-7b"})
    benchmark::RegisterBenchmark(("preset_config/" + std::string(name)).c_str(), preset_by_name,
                                 name)
        ->Unit(benchmark::kMicrosecond);
  benchmark::RegisterBenchmark("estimate/llama-2-7b", estimate_one)->Unit(benchmark::kMillisecond);
  for (const auto& [name, parallel] :
       {std::pair<std::string, const char*>{"recommend/llama-2-7b", "{num_gpus: 1}"},
        {"recommend/llama-2-7b-on-8-gpus", "{num_gpus: 8}"}}) {
    benchmark::RegisterBenchmark(name.c_str(), recommend_one, parallel)
        ->Unit(benchmark::kMillisecond)
        ->MeasureProcessCPUTime()
        ->UseRealTime();
  }
  benchmark::RegisterBenchmark("estimate_batch/gpt2", estimate_batch)
      ->RangeMultiplier(10)
      ->Range(1, 100)
      ->Unit(benchmark::kMillisecond)
      ->Complexity(benchmark::oN);
}

}  // namespace
}  // namespace memfathom

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  memfathom::register_all();
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}

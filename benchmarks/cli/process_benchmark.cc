// What a person waits for: whole processes, from start to answer. Goals: the estimate of a LoRA job
// with a calibration from the database 10 ms, 20,000 small jobs of a batch a second on two cores,
// recommend of full training of a 7B model 0.3 s.
#include <benchmark/benchmark.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <string>
#include <vector>

#include "tests/support/temporary_directory.h"

namespace memfathom {
namespace {

using Words = std::vector<std::string>;

// The exit code; what the program prints goes nowhere.
int run(Words words) {
  words.insert(words.begin(), MEMFATHOM_BINARY);
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  pid_t child = 0;
  const int failed =
      posix_spawn(&child, MEMFATHOM_BINARY, &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (failed != 0) return -1;
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

void repeat(benchmark::State& state, const Words& words) {
  for (auto _ : state) {
    if (run(words) == 0) continue;
    state.SkipWithError("the program failed");
    return;
  }
}

void help(benchmark::State& state) { repeat(state, {"--help"}); }
BENCHMARK(help)->Unit(benchmark::kMillisecond)->UseRealTime();

const Words kLoraJob{"--model",     "llama-2-7b", "--batch-size", "1",     "--sequence-length",
                     "2048",        "--dtype",    "bf16",         "--gpu", "a100-40gb",
                     "--lora-rank", "8"};

void estimate_with_a_calibration(benchmark::State& state) {
  const TemporaryDirectory directory;
  const std::string database = (directory / "store.db").string();
  if (run({"--db", database, "db", "import", MEMFATHOM_CALIBRATION}) != 0) {
    state.SkipWithError("the calibration was not imported");
    return;
  }
  Words words{"--db", database, "estimate"};
  words.insert(words.end(), kLoraJob.begin(), kLoraJob.end());
  repeat(state, words);
}
BENCHMARK(estimate_with_a_calibration)->Unit(benchmark::kMillisecond)->UseRealTime();

void recommend(benchmark::State& state) {
  Words words{"recommend"};
  words.insert(words.end(), kLoraJob.begin(), kLoraJob.end());
  words.insert(words.end(), {"--num-gpus", std::to_string(state.range(0))});
  repeat(state, words);
}
BENCHMARK(recommend)->Arg(1)->Arg(8)->Unit(benchmark::kMillisecond)->UseRealTime();

// Far from fitting, so that everything is searched: one GPU, and eight under ZeRO-2.
void recommend_full_training(benchmark::State& state) {
  Words words{"recommend", "--model", "llama-2-7b", "--batch-size", "4",       "--sequence-length",
              "2048",      "--dtype", "bf16",       "--gpu",        "rtx-4090"};
  if (state.range(0) > 1)
    words.insert(words.end(), {"--num-gpus", std::to_string(state.range(0)), "--zero-stage", "2"});
  repeat(state, words);
}
BENCHMARK(recommend_full_training)->Arg(1)->Arg(8)->Unit(benchmark::kMillisecond)->UseRealTime();

// Small networks of two to nine linear layers, no two alike.
void estimate_batch(benchmark::State& state) {
  const TemporaryDirectory directory;
  const std::string path = (directory / "jobs.jsonl").string();
  std::ofstream file(path);
  for (int i = 0; i < state.range(0); ++i) {
    std::string layers;
    int width = 784;
    for (int layer = 0; layer < 2 + i % 8; ++layer) {
      const int out = 64 + (i * 37 + layer * 101) % 4000;
      layers += fmt::format(R"({{"type": "linear", "in": {}, "out": {}}}, {{"type": "relu"}}, )",
                            width, out);
      width = out;
    }
    file << fmt::format(
        R"({{"model": {{"input": {{"shape": [784]}}, "layers": [{}{{"type": "linear", "in": {}, "out": 10}}], "loss": "cross_entropy"}}, )"
        R"("training": {{"batch_size": {}, "optimizer": "adam"}}, "target": {{"gpu": "a100-40gb"}}}})"
        "\n",
        layers, width, 1 + i % 512);
  }
  file.close();
  repeat(state, {"estimate", "--batch", path});
  state.SetItemsProcessed(state.iterations() * state.range(0));
}
BENCHMARK(estimate_batch)->Arg(3000)->Unit(benchmark::kMillisecond)->UseRealTime();

}  // namespace
}  // namespace memfathom

BENCHMARK_MAIN();

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <chrono>
#include <ctime>

#include "cli/bench/run.h"
#include "cli/clock.h"
#include "core/error.h"
#include "core/progress.h"
#include "kernels/workspaces/architectures.h"
#include "kernels/workspaces/cudnn_planner.h"
#include "profiler/regression/suite.h"

namespace memfathom {
namespace {

struct PlannerQuery {
  std::string name;
  std::string label;
  std::string line;
};

std::vector<PlannerQuery> convolutions(const BenchFilter& filter) {
  std::vector<PlannerQuery> questions;
  for (ConvolutionCase& c : convolution_suite()) {
    if (filter.admits(c.name))
      questions.push_back({std::move(c.name), std::move(c.label), to_string(c.query)});
  }
  return questions;
}

std::vector<PlannerQuery> attentions(const BenchFilter& filter) {
  std::vector<PlannerQuery> questions;
  for (AttentionCase& c : attention_suite()) {
    if (filter.admits(c.name))
      questions.push_back({std::move(c.name), std::move(c.label), std::move(c.question)});
  }
  return questions;
}

// cuDNN needs libcuda to compile attention; the toolkit's stub is sufficient.
std::string libcuda_for(const BenchRunOptions& options) {
  if (!options.libcuda.empty()) return options.libcuda;
  for (const char* path :
       {"/usr/local/cuda/lib64/stubs/libcuda.so", "/usr/lib/x86_64-linux-gnu/stubs/libcuda.so"}) {
    if (access(path, R_OK) == 0) return path;
  }
  return {};
}

BenchRow row_from(const PlannerQuery& question, const std::string& answer) {
  BenchRow row;
  row.name = question.name;
  row.label = question.label;
  row.time_of = "question";
  std::int64_t bytes = -1;
  const auto [end, failure] = std::from_chars(answer.data(), answer.data() + answer.size(), bytes);
  if (failure != std::errc{} || end != answer.data() + answer.size() || bytes < 0) {
    row.error = answer;
    return row;
  }
  row.counters["workspace_bytes"] = Bytes{bytes};
  row.operations.push_back({"workspace_cudnn", question.label, Bytes{bytes}});
  return row;
}

// A planner that crashes fails only that query; the next query starts a new one.
BenchRow query_planner(CudnnPlanner& planner, const PlannerQuery& question) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point start = Clock::now();
  const std::clock_t cpu_start = std::clock();
  std::string answer;
  try {
    answer = planner.query_lines(std::span(&question.line, 1)).front();
  } catch (const Error& error) {
    answer = error.what();
  }
  BenchRow row = row_from(question, answer);
  row.seconds = std::chrono::duration<double>(Clock::now() - start).count();
  row.cpu_seconds = static_cast<double>(std::clock() - cpu_start) / CLOCKS_PER_SEC;
  return row;
}

Environment described(const GpuDescription& gpu, const std::string& cudnn) {
  Environment environment;
  environment.gpu = gpu.name;
  environment.architecture = architecture_of(gpu);
  environment.memory_total = Bytes{gpu.memory};
  environment.cudnn = cudnn;
  environment.framework = "memfathom";
  return environment;
}

}  // namespace

void run_cudnn_suite(const BenchRunOptions& options, const Context& context) {
  CudnnPlannerOptions planning;
  planning.gpu = options.device.substr(std::string_view("cudnn:").size());
  planning.library_directory = options.cudnn_library;
  const GpuDescription& gpu = describe_gpu(planning.gpu);

  const BenchFilter filter(options.filter);
  const std::vector<PlannerQuery> plain = convolutions(filter);
  std::vector<PlannerQuery> with_libcuda = attentions(filter);
  CudnnPlannerOptions attention_planning = planning;
  attention_planning.libcuda = libcuda_for(options);
  if (!with_libcuda.empty() && attention_planning.libcuda.empty()) {
    if (plain.empty())
      throw Error(ErrorKind::kEnvironment,
                  "attention requires libcuda.so; set its path with --libcuda");
    context.note("attention is skipped: it requires libcuda.so; set its path with --libcuda");
    with_libcuda.clear();
  }

  BenchFile fresh;
  fresh.device = options.device;
  fresh.date = utc_now();
  fresh.program = "memfathom " MEMFATHOM_VERSION;
  fresh.selection =
      fmt::format("cudnn {}{}", options.filter, with_libcuda.empty() ? "" : " +attention");
  fresh.repetitions = options.repetitions;
  fresh.environment = described(gpu, CudnnPlanner(planning).cudnn_version());
  BenchLog log(options.out, fresh);
  if (log.taken_over() > 0)
    context.note(fmt::format("resuming an interrupted run after {} rows", log.taken_over()));

  const auto questions = static_cast<std::int64_t>(plain.size() + with_libcuda.size());
  Progress progress(context.err, progress_mode(STDERR_FILENO, context.quiet), "bench",
                    options.repetitions * questions);
  for (int repetition = 0; repetition < options.repetitions; ++repetition) {
    CudnnPlanner planner(planning);
    CudnnPlanner attention_planner(attention_planning);
    std::vector<BenchRow> rows;
    const auto ask_all = [&](CudnnPlanner& whom, const std::vector<PlannerQuery>& all) {
      for (const PlannerQuery& question : all) {
        progress.advance(1, question.label);
        if (log.has(question.name, repetition)) continue;
        rows.push_back(query_planner(whom, question));
        rows.back().repetition = repetition;
      }
    };
    ask_all(planner, plain);
    ask_all(attention_planner, with_libcuda);
    if (!rows.empty()) log.add(std::move(rows));
  }
  log.finish();
}

}  // namespace memfathom

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>

#include "cli/bench_run.h"
#include "cli/clock.h"
#include "cli/estimator_runner.h"
#include "core/error.h"
#include "core/progress.h"
#include "profiler/probe_target.h"
#include "profiler/regression/suite.h"
#include "profiler/virtual_card.h"

namespace memfathom {
namespace {

// A benchmark of a device: a job, or what the process takes before one.
struct DeviceCase {
  std::string name;
  std::string label;
  std::string job;
  std::string startup;  // the counter that is kept; empty for a job
  LibraryUse uses;
};

constexpr const char* kTinyJob =
    R"({"model":{"input":{"shape":[1024],"requires_grad":true},"layers":[{"type":"relu"}],"loss":"mean"},)"
    R"("training":{"batch_size":1,"optimizer":"none"}})";

std::vector<DeviceCase> startup_cases() {
  return {
      {"startup/context", "context", kTinyJob, "context_bytes", {}},
      {"startup/cublas", "modules of cuBLAS", kTinyJob, "module_cublas_bytes", {.cublas = true}},
      {"startup/cudnn", "modules of cuDNN", kTinyJob, "module_cudnn_bytes", {.cudnn = true}},
      {"startup/cufft", "modules of cuFFT", kTinyJob, "module_cufft_bytes", {.cufft = true}}};
}

SuiteScale scale_of(const BenchRunOptions& options) {
  if (options.scale == "tiny") return SuiteScale::kTiny;
  if (options.scale == "small") return SuiteScale::kSmall;
  if (options.scale == "full") return SuiteScale::kFull;
  const bool is_processor = parse_device(options.device).kind == DeviceKind::kCpu;
  return is_processor ? SuiteScale::kSmall : SuiteScale::kFull;
}

std::vector<DeviceCase> cases_for(const BenchRunOptions& options) {
  const BenchFilter filter(options.filter);
  std::vector<DeviceCase> cases = startup_cases();
  for (JobCase& c : job_suite(scale_of(options)))
    cases.push_back({std::move(c.name), std::move(c.label), std::move(c.job), "", {}});
  std::erase_if(cases, [&](const DeviceCase& c) { return !filter.admits(c.name); });
  return cases;
}

std::string component_of(Library library) {
  const bool is_lt = library == Library::kCublasLt;
  return fmt::format("workspace_{}", to_string(is_lt ? Library::kCublas : library));
}

// What a stage added to the one before; nothing when it was not reached.
std::optional<Bytes> added_by(std::string_view stage, const std::vector<StageReading>& stages) {
  for (std::size_t i = 1; i < stages.size(); ++i) {
    if (stages[i].stage != stage) continue;
    return std::max(Bytes{}, stages[i].device_used - stages[i - 1].device_used);
  }
  return std::nullopt;
}

void fill(const Sample& sample, BenchRow& row) {
  const auto set = [&](const char* name, std::optional<Bytes> bytes) {
    if (bytes) row.counters[name] = *bytes;
  };
  set("allocated_peak_bytes", sample.allocated_peak);
  set("reserved_peak_bytes", sample.reserved_peak);
  set("device_peak_bytes", sample.device_peak);
  set("context_bytes", added_by("context", sample.stages));
  set("module_cublas_bytes", added_by("cublas", sample.stages));
  set("module_cudnn_bytes", added_by("cudnn", sample.stages));
  set("module_cufft_bytes", added_by("cufft", sample.stages));
  if (!sample.workspaces.empty()) {
    Bytes largest;
    for (const WorkspaceRequest& request : sample.workspaces) {
      largest = std::max(largest, request.bytes);
      row.operations.push_back({component_of(request.library), request.shape, request.bytes});
    }
    row.counters["workspace_bytes"] = largest;
  }
}

// Different in every repetition and every run with another seed, the same when it is run again.
std::uint64_t seed_of(const BenchRunOptions& options, const std::string& name, int repetition) {
  return stable_hash(fmt::format("{}|{}|{}", options.seed, name, repetition));
}

ProbeReply environment_of(const std::string& device, const Probe& probe) {
  ProbeRequest request;
  request.device = device;
  const ProbeOutcome outcome = probe(request);
  if (outcome.reply) return *outcome.reply;
  throw Error(ErrorKind::kEnvironment, fmt::format("{} cannot be used: {}", device, outcome.note));
}

}  // namespace

BenchRow row_of(const ProbeOutcome& outcome, const std::string& startup) {
  BenchRow row;
  const bool has_sample = outcome.reply && outcome.reply->sample;
  if (outcome.status != SampleStatus::kOk || !has_sample) {
    row.error = outcome.note.empty()
                    ? std::string(to_string(outcome.status))
                    : fmt::format("{}: {}", to_string(outcome.status), outcome.note);
    return row;
  }
  fill(*outcome.reply->sample, row);
  if (!startup.empty()) {
    std::erase_if(row.counters, [&](const auto& counter) { return counter.first != startup; });
    if (row.counters.empty()) row.error = "the probe did not reach that stage";
  }
  return row;
}

void run_device_suite(const BenchRunOptions& options, const Probe& probe, const Context& context) {
  const DeviceName name = parse_device(options.device);
  if (!options.plant.empty() && name.kind != DeviceKind::kVirtual)
    throw Error(ErrorKind::kUsage,
                "--plant changes a virtual card only; write --device virtual:NAME");
  const std::string device = options.device + (options.plant.empty() ? "" : "+" + options.plant);
  const std::vector<DeviceCase> cases = cases_for(options);
  const ProbeReply there = environment_of(device, probe);

  BenchFile fresh;
  fresh.device = device;
  fresh.date = utc_now();
  fresh.program = "memfathom " MEMFATHOM_VERSION;
  fresh.selection =
      fmt::format("layers {} {} seed {}", options.scale, options.filter, options.seed);
  fresh.repetitions = options.repetitions;
  fresh.environment = there.environment;
  BenchLog log(options.out, fresh);
  if (log.taken_over() > 0)
    context.note(fmt::format("goes on after {} rows of a run that was stopped", log.taken_over()));

  const EstimatorRunner runner;
  Progress progress(context.err, progress_mode(STDERR_FILENO, context.quiet), "bench",
                    options.repetitions * static_cast<std::int64_t>(cases.size()));
  for (const DeviceCase& c : cases) {
    ProbeRequest request;
    request.device = device;
    request.workload = c.name;
    request.job = c.job;
    request.uses = c.startup.empty() ? runner.forecast(c.job).uses : c.uses;
    request.ceiling = Bytes{there.memory_free.count() / 2};
    std::vector<BenchRow> rows;
    for (int repetition = 0; repetition < options.repetitions; ++repetition) {
      progress.advance(1, c.label);
      if (log.has(c.name, repetition)) continue;
      request.seed = seed_of(options, c.name, repetition);
      using Clock = std::chrono::steady_clock;
      const Clock::time_point start = Clock::now();
      const ProbeOutcome outcome = probe(request);
      BenchRow row = row_of(outcome, c.startup);
      row.name = c.name;
      row.label = c.label;
      row.repetition = repetition;
      row.seconds = std::chrono::duration<double>(Clock::now() - start).count();
      row.time_of = "process";
      // A simulated card takes no time of its own.
      if (name.kind != DeviceKind::kVirtual && c.startup.empty() && row.error.empty() &&
          outcome.reply->sample->seconds_per_step) {
        row.seconds = *outcome.reply->sample->seconds_per_step;
        row.time_of = "step";
      }
      row.cpu_seconds = row.seconds;
      rows.push_back(std::move(row));
    }
    if (!rows.empty()) log.add(std::move(rows));
  }
  log.finish();
}

std::vector<std::string> suite_names(const BenchRunOptions& options) {
  std::vector<std::string> names;
  if (options.device.starts_with("cudnn:")) {
    const BenchFilter filter(options.filter);
    for (const ConvolutionCase& c : convolution_suite()) names.push_back(c.name);
    for (const AttentionCase& c : attention_suite()) names.push_back(c.name);
    std::erase_if(names, [&](const std::string& name) { return !filter.admits(name); });
    return names;
  }
  for (const DeviceCase& c : cases_for(options)) names.push_back(c.name);
  return names;
}

}  // namespace memfathom

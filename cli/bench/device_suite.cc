#include <fmt/format.h>
#include <unistd.h>

#include <chrono>

#include "cli/bench/cases.h"
#include "cli/bench/run.h"
#include "cli/calibrate/estimator_runner.h"
#include "cli/clock.h"
#include "core/error.h"
#include "core/progress.h"
#include "profiler/probe_target.h"
#include "profiler/regression/suite.h"
#include "profiler/virtual_gpu.h"

namespace memfathom {
namespace {

std::vector<DeviceCase> cases_for(const BenchRunOptions& options) {
  const BenchFilter filter(options.filter);
  std::vector<DeviceCase> cases = device_cases(options.device, options.scale);
  std::erase_if(cases, [&](const DeviceCase& c) { return !filter.admits(c.name); });
  return cases;
}

// Depends on repetition and seed only, so that a run can be repeated.
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

// Repeats a sample that another process on the GPU disturbed, as a calibration does.
ProbeOutcome undisturbed(const Probe& probe, const ProbeRequest& request) {
  constexpr int kRetakes = 2;
  ProbeOutcome outcome = probe(request);
  for (int i = 0; i < kRetakes && outcome.status == SampleStatus::kDisturbed; ++i)
    outcome = probe(request);
  return outcome;
}

}  // namespace

void run_device_suite(const BenchRunOptions& options, const Probe& probe, const Context& context) {
  const DeviceName name = parse_device(options.device);
  if (!options.plant.empty() && name.kind != DeviceKind::kVirtual)
    throw Error(ErrorKind::kUsage,
                "--plant applies only to a virtual GPU; use --device virtual:NAME");
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
    context.note(fmt::format("resuming an interrupted run after {} rows", log.taken_over()));

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
      const ProbeOutcome outcome = undisturbed(probe, request);
      BenchRow row = row_of(outcome, c.startup);
      row.name = c.name;
      row.label = c.label;
      row.repetition = repetition;
      row.seconds = std::chrono::duration<double>(Clock::now() - start).count();
      row.time_of = "process";
      // A simulated GPU has no timings.
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

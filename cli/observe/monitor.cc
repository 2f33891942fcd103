#include <fmt/format.h>
#include <poll.h>

#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>
#include <ostream>

#include "api/local_session.h"
#include "cli/commands.h"
#include "cli/database.h"
#include "cli/interrupt.h"
#include "cli/job/job_source.h"
#include "cli/observe/stored_observations.h"
#include "cli/option_parser.h"
#include "core/error.h"

namespace memfathom {
namespace {

using nlohmann::json;

// NVML, unless resident memory is requested.
std::unique_ptr<Nvml> meter_for(const std::string& device) {
  if (device == "cpu") return nullptr;
  if (device != "cuda") {
    throw Error(ErrorKind::kUsage,
                fmt::format("--device is \"{}\"; write cuda (every GPU, by NVML) or cpu (resident "
                            "memory)",
                            device));
  }
  std::string why;
  std::unique_ptr<Nvml> nvml = Nvml::open(&why);
  if (!nvml)
    throw Error(ErrorKind::kEnvironment,
                fmt::format("{}; use --device cpu to monitor resident memory instead", why));
  return nvml;
}

void watch_until_end(ProcessWatch& watch, std::int64_t pid, double interval) {
  const InterruptGuard interrupt;
  while (!interrupt.asked() && watch.read(pid))
    poll(nullptr, 0, static_cast<int>(std::lround(1000 * interval)));
}

struct MonitorOutcome {
  WatchedPeak peak;
  std::optional<Observation> kept;
  std::optional<Estimate> estimate;
};

void print(std::int64_t pid, const ProcessWatch& watch, const MonitorOutcome& outcome,
           Context& context) {
  const std::string device =
      outcome.peak.device < 0 ? "cpu" : fmt::format("cuda:{}", outcome.peak.device);
  if (context.format == Format::kJson) {
    json document{{"schema", "memfathom.monitor/1"},
                  {"pid", pid},
                  {"device", device},
                  {"metric", outcome.peak.metric},
                  {"peak_bytes", outcome.peak.bytes.count()},
                  {"readings", watch.readings()},
                  {"kept", outcome.kept.has_value()}};
    if (outcome.estimate)
      document["estimated_bytes"] = estimated_bytes(*outcome.estimate, Metric::kDevice).count();
    context.out << document.dump(2) << '\n';
    return;
  }
  context.out << fmt::format("process {} on {}: {} at most ({}, {} readings)\n", pid, device,
                             to_string(outcome.peak.bytes), outcome.peak.metric, watch.readings());
  if (outcome.estimate)
    context.out << estimated_vs_observed(*outcome.estimate, *outcome.kept) << '\n';
}

}  // namespace

ExitCode run_monitor(const Arguments& arguments, Context& context) {
  OptionParser parser("monitor");
  JobSource source;
  std::string number;
  std::string device = "cuda";
  double interval = 0.1;
  std::optional<std::string> framework_version;
  parser.positional("PID", number);
  source.declare(parser);
  parser.option("--device", device);
  parser.option("--interval", interval);
  parser.option("--framework-version", framework_version);
  parser.parse(arguments);
  std::int64_t pid = 0;
  const auto [end, failure] = std::from_chars(number.data(), number.data() + number.size(), pid);
  if (failure != std::errc{} || end != number.data() + number.size() || pid < 1)
    throw Error(ErrorKind::kUsage, fmt::format("\"{}\" is not a process id", number));
  if (!(interval >= 0.001 && interval <= 3600))
    throw Error(ErrorKind::kUsage,
                fmt::format("--interval is {}; write seconds between 0.001 and 3600", interval));
  // Read the job before waiting: an unreadable job must fail at once.
  std::optional<JobInput> input;
  if (source.given()) input = source.read("monitor");

  ProcessWatch watch(meter_for(device));
  watch_until_end(watch, pid, interval);
  if (watch.readings() == 0)
    throw Error(ErrorKind::kInput,
                fmt::format("process {} does not exist; run `ps` for a list", pid));
  const std::optional<WatchedPeak> peak = watch.peak();
  if (!peak) {
    throw Error(
        ErrorKind::kEnvironment,
        fmt::format(
            "process {} was not seen on a GPU (inside a container NVML uses a different process "
            "id: monitor it from outside; GPUs hidden by CUDA_VISIBLE_DEVICES are not monitored)",
            pid));
  }
  MonitorOutcome outcome{*peak, {}, {}};
  if (input) {
    outcome.estimate = LocalSession(find_database(context)).estimator().estimate_as_run(input->job);
    outcome.kept = observation_of(*peak, watch, to_json(input->document).dump());
    if (framework_version) outcome.kept->framework_version = *framework_version;
    store_observations({*outcome.kept}, context);
  } else {
    context.note(
        "no job was given, so nothing is stored; use memfathom monitor PID JOB.yaml to store the "
        "peak");
  }
  print(pid, watch, outcome, context);
  return ExitCode::kYes;
}

}  // namespace memfathom

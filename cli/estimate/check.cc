#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <ostream>

#include "api/local_session.h"
#include "cli/commands.h"
#include "cli/database.h"
#include "cli/estimate/elapsed_line.h"
#include "cli/estimate/relayed_command.h"
#include "cli/job/job_source.h"
#include "cli/observe/observation_file.h"
#include "cli/observe/stored_observations.h"
#include "cli/option_parser.h"
#include "cli/text/estimate_text.h"
#include "core/error.h"
#include "core/printable.h"
#include "core/wrap.h"

namespace memfathom {
namespace {

constexpr int kSamplingMilliseconds = 100;
constexpr const char* kObservedVariable = "MEMFATHOM_OBSERVED";

// A temporary file for the command's own measurements, removed on destruction.
class ObservedFile {
 public:
  ObservedFile() {
    std::error_code missing;
    const std::filesystem::path folder = std::filesystem::temp_directory_path(missing);
    if (missing) return;  // $TMPDIR names none: the command is run all the same
    path_ = (folder / "memfathom-XXXXXX").string();
    const int file = mkostemp(path_.data(), O_CLOEXEC);
    if (file < 0) {
      path_.clear();
      return;
    }
    close(file);
    setenv(kObservedVariable, path_.c_str(), 1);
  }
  ~ObservedFile() {
    if (!path_.empty()) unlink(path_.c_str());
  }
  ObservedFile(const ObservedFile&) = delete;
  ObservedFile& operator=(const ObservedFile&) = delete;

  const std::string& path() const { return path_; }  // empty if no file could be created

 private:
  std::string path_;
};

// A monitoring failure must neither stop the command nor prevent it from running.
std::optional<ProcessWatch> watch_gpus(const Context& context) {
  std::string why;
  std::unique_ptr<Nvml> nvml = Nvml::open(&why);
  if (!nvml) return std::nullopt;
  try {
    return std::optional<ProcessWatch>(std::in_place, std::move(nvml));
  } catch (const Error& error) {
    context.detail(fmt::format("the command's GPU usage is not monitored: {}", error.what()));
    return std::nullopt;
  }
}

void read_once(ProcessWatch& watch, pid_t child, bool& works) {
  try {
    watch.read(child);
  } catch (const Error&) {
    works = false;
  }
}

// Runs the command to its end and returns its exit code.
int run(const std::vector<std::string>& words, ProcessWatch* watch) {
  RelayedCommand command(words);
  bool watching = watch != nullptr;
  while (watching && !command.has_ended()) {
    read_once(*watch, command.pid(), watching);
    poll(nullptr, 0, kSamplingMilliseconds);
  }
  return command.wait();
}

// The observations the command wrote, and the monitored peak if the command succeeded: a failed one
// may not have reached its peak.
std::vector<Observation> observations_of(const ObservedFile& written, const ProcessWatch* watch,
                                         int code, const Observation& defaults) {
  std::vector<Observation> found;
  if (!written.path().empty()) found = read_observations(written.path(), defaults);
  if (watch == nullptr || code != 0) return found;
  std::optional<WatchedPeak> peak = watch->peak();
  if (!peak) peak = watch->device_growth();
  if (peak) {
    Observation seen = observation_of(*peak, *watch, defaults.job);
    for (const Observation& one : found) seen.framework_version = one.framework_version;
    found.push_back(std::move(seen));
  }
  return found;
}

// The command has ended: later errors are warnings and do not change its exit code.
void report(const Estimate& estimate, const ObservedFile& written, const ProcessWatch* watch,
            int code, const Observation& defaults, const Context& context) {
  try {
    const std::vector<Observation> observations = observations_of(written, watch, code, defaults);
    if (observations.empty()) {
      context.detail(fmt::format(
          "nothing was observed: the command wrote nothing to ${} and was not seen on a GPU",
          kObservedVariable));
      return;
    }
    store_observations(observations, context);
    for (const Observation& observation : observations)
      context.note(estimated_vs_observed(estimate, observation));
  } catch (const Error& error) {
    context.warn(error.what());
  }
}

ExitCode run_and_observe(const std::vector<std::string>& command, const JobInput& input,
                         const Estimate& estimate, Context& context) {
  Observation defaults;
  defaults.job = to_json(input.document).dump();
  defaults.gpu = input.job.target.gpu;
  defaults.framework = "pytorch";
  defaults.source = "the command itself";
  const ObservedFile written;
  std::optional<ProcessWatch> watch = watch_gpus(context);
  ProcessWatch* watching = watch ? &*watch : nullptr;
  const int code = run(command, watching);
  report(estimate, written, watching, code, defaults, context);
  return static_cast<ExitCode>(code);
}

// Why the command was not run, and what to do.
const char* reason_of(const Estimate& estimate) {
  switch (estimate.verdict.status) {
    case VerdictStatus::kDoesNotFit:
    case VerdictStatus::kTight:
      return "; run memfathom recommend for changes that make the job fit";
    case VerdictStatus::kUndecided:
      return ": --strict requires that every key that may change the memory is read";
    case VerdictStatus::kFits:
    case VerdictStatus::kUnknown: break;
  }
  return ": --strict requires a calibration of this GPU (run memfathom calibrate)";
}

Estimate estimate_shown(const Job& job, Context& context) {
  const ElapsedLine shown(context.err, progress_mode(STDERR_FILENO, context.quiet), "estimating");
  return LocalSession(find_database(context)).estimator().estimate_as_run(job);
}

}  // namespace

ExitCode run_check(const Arguments& arguments, Context& context) {
  OptionParser parser("check");
  JobSource source;
  std::vector<std::string> command;
  bool strict = false;
  source.declare(parser);
  parser.positional("COMMAND", command);
  parser.flag("--strict", strict);
  const auto dashes = std::find(arguments.begin(), arguments.end(), "--");
  parser.parse({arguments.begin(), dashes});
  if (dashes != arguments.end()) command.insert(command.end(), dashes + 1, arguments.end());
  if (!source.given()) source.read_command(command);
  const JobInput input = source.read("check");
  Estimate estimate = estimate_shown(input.job, context);
  input.annotate(estimate);
  for (const std::string& sentence : estimate.warnings) context.warn(sentence);
  const VerdictStatus status = estimate.verdict.status;
  if (status == VerdictStatus::kUnknown) {
    throw Error(ErrorKind::kUsage, "check needs a target: add --gpu rtx-4090 or --gpu-memory 24");
  }
  const bool run = status != VerdictStatus::kDoesNotFit && !(strict && is_undecided(estimate));
  if (!context.quiet || !run)
    context.err << wrapped(printable(verdict_sentence(estimate, false, context.language)),
                           context.error_columns);
  if (!run) {
    if (!command.empty())
      context.err << fmt::format("{} was not started{}\n", printable(command.front()),
                                 reason_of(estimate));
    return status == VerdictStatus::kDoesNotFit ? ExitCode::kNo : ExitCode::kUndecided;
  }
  if (command.empty()) return ExitCode::kYes;
  context.out.flush();
  return run_and_observe(command, input, estimate, context);
}

}  // namespace memfathom

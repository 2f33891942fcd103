#include <fcntl.h>
#include <fmt/format.h>

#include <cerrno>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "cli/calibrate/fitting.h"
#include "cli/calibrate/profiling.h"
#include "cli/calibrate/recorded_history.h"
#include "cli/commands.h"
#include "cli/database.h"
#include "cli/render.h"
#include "cli/text/history_text.h"
#include "core/error.h"
#include "core/file_descriptor.h"
#include "core/json_io.h"
#include "core/json_value.h"
#include "core/progress.h"

namespace memfathom {
namespace {

using nlohmann::json;

std::string libraries_of(const LibraryUse& uses) {
  std::string text;
  for (const MeasuredLibrary& library : kMeasuredLibraries) {
    if (uses.*library.used) text += (text.empty() ? "" : ", ") + std::string(library.calls);
  }
  return text.empty() ? "none" : text;
}

std::string condition_text(double condition) {
  return std::isinf(condition) ? "infinite: these workloads cannot separate all constants"
                               : fmt::format("{:.1f}", condition);
}

json plan_json(const PreparedProfile& prepared) {
  json workloads = json::array();
  for (const Workload& workload : prepared.plan.workloads) {
    workloads.push_back({{"name", workload.name},
                         {"family", workload.family},
                         {"validation", workload.validation},
                         {"reserved_bytes", workload.forecast.reserved.count()},
                         {"job", parse_json_value(workload.job, workload.name)}});
  }
  json left_out = json::array();
  for (const SkippedWorkload& one : prepared.plan.left_out)
    left_out.push_back({{"name", one.name}, {"reason", one.why}});
  const double condition = design_condition(prepared.plan.workloads);
  return {{"schema", "memfathom.plan/1"},
          {"plan", prepared.plan.name},
          {"device", prepared.environment.gpu},
          {"memory_ceiling_bytes", prepared.campaign.ceiling.count()},
          {"budget_seconds", prepared.plan.budget_seconds},
          {"condition_number", std::isinf(condition) ? json(nullptr) : json(condition)},
          {"workloads", std::move(workloads)},
          {"left_out", std::move(left_out)}};
}

void print_plan(const PreparedProfile& prepared, bool details, Context& context) {
  if (context.format == Format::kJson) {
    context.out << plan_json(prepared).dump(2) << '\n';
    return;
  }
  Table table({{"workload"}, {"for"}, {"libraries"}, {"reserved MiB", Align::kRight}});
  for (const Workload& workload : prepared.plan.workloads) {
    table.add_row({workload.name, workload.validation ? "validation" : "fit",
                   libraries_of(workload.forecast.uses),
                   fmt::format("{:.0f}", workload.forecast.reserved.mib())});
  }
  context.out << rendered(table, context);
  if (!details || context.format == Format::kCsv) return;
  context.out << fmt::format(
      "\n{} workloads on {}; at most {} each, of {} free; repeats within {}\n"
      "condition number of the fitted ones: {}\n",
      prepared.plan.workloads.size(), prepared.environment.gpu,
      to_string(prepared.campaign.ceiling), to_string(prepared.memory_free),
      duration_text(prepared.plan.budget_seconds),
      condition_text(design_condition(prepared.plan.workloads)));
  for (const SkippedWorkload& one : prepared.plan.left_out)
    context.out << fmt::format("left out: {} ({})\n", one.name, one.why);
}

// PyTorch's record of the one workload, against its replay.
std::optional<HistoryComparison> compare_history(const ProfileOptions& options,
                                                 const PreparedProfile& prepared,
                                                 const ProfileResult& profiled, Context& context) {
  if (options.trace.empty() || options.framework != "pytorch" || profiled.samples.empty() ||
      profiled.samples.front().status != SampleStatus::kOk)
    return std::nullopt;
  std::vector<std::string> notes;
  HistoryComparison comparison =
      compare_with_replay(options.trace, profiled.samples.front().job, prepared.environment,
                          prepared.cudnn_directory, notes);
  for (const std::string& note : notes) context.note(note);
  return comparison;
}

void print_samples(const ProfileResult& profiled, const std::optional<HistoryComparison>& history,
                   Context& context) {
  if (context.format == Format::kJson) {
    json samples = json::array();
    for (const Sample& sample : profiled.samples) samples.push_back(to_json(sample));
    json document{{"schema", "memfathom.profile/1"},
                  {"run", profiled.run},
                  {"interrupted", profiled.interrupted},
                  {"samples", std::move(samples)}};
    if (history) document["history"] = history_json(*history);
    context.out << document.dump(2) << '\n';
    return;
  }
  context.out << rendered(sample_table(profiled.samples, nullptr), context);
  if (history && context.format != Format::kCsv) context.out << history_text(*history);
}

// Before anything is measured. Leaves the file as it is, or makes an empty one.
void require_writable(const std::string& trace) {
  const FileDescriptor file(::open(trace.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0666));
  if (file) return;
  throw Error(ErrorKind::kEnvironment,
              fmt::format("{}: the trace cannot be written: {}; choose another place", trace,
                          std::strerror(errno)));
}

// A failed sample is a result; a trace that was asked for and is not there is an error.
void require_recorded(const ProfileResult& profiled, const std::string& trace) {
  for (const Sample& sample : profiled.samples) {
    if (sample.status != SampleStatus::kFailed) continue;
    throw Error(ErrorKind::kEnvironment, fmt::format("{}: no trace was recorded: {}: {}", trace,
                                                     sample.workload, sample.status_note));
  }
}

}  // namespace

ExitCode run_profile(const Arguments& arguments, Context& context) {
  ProfileOptions options;
  bool list = false;
  bool dry_run = false;
  OptionParser parser("profile");
  declare(parser, options);
  parser.option("--trace", options.trace);
  parser.option("--driver-allocations", options.driver_allocations);
  parser.flag("--list", list);
  parser.flag("--dry-run", dry_run);
  parser.parse(arguments);
  // The probe may run in another directory.
  if (!options.trace.empty()) options.trace = std::filesystem::absolute(options.trace).string();

  const PreparedProfile prepared = prepare(options);
  if (!options.trace.empty() && prepared.plan.workloads.size() != 1) {
    throw Error(ErrorKind::kUsage,
                fmt::format("--trace records one workload, but {} are selected; select one with "
                            "--filter",
                            prepared.plan.workloads.size()));
  }
  if (list || dry_run) {
    print_plan(prepared, dry_run, context);
    return ExitCode::kYes;
  }
  if (!options.trace.empty()) require_writable(options.trace);
  Store store = Store::open(database_path(context), Store::Mode::kReadWrite);
  const ProfileResult profiled = profile(prepared, store, context);
  print_samples(profiled, compare_history(options, prepared, profiled, context), context);
  if (!options.trace.empty()) require_recorded(profiled, options.trace);
  if (!profiled.interrupted) return ExitCode::kYes;
  context.note("interrupted; run the same command again to resume");
  return interrupted_code(profiled);
}

}  // namespace memfathom

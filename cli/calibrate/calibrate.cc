#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <ostream>

#include "cli/calibrate/fitting.h"
#include "cli/calibrate/profiling.h"
#include "cli/commands.h"
#include "cli/database.h"
#include "cli/render.h"
#include "core/json_io.h"

namespace memfathom {
namespace {

using nlohmann::json;

bool has_finished_run(const Store& store, const PreparedProfile& prepared) {
  for (const Run& run : store.runs()) {
    if (run.finished && run.plan == prepared.plan_name && run.environment == prepared.environment)
      return true;
  }
  return false;
}

ExitCode nothing_to_do(const Calibration& calibration, Context& context) {
  if (context.format == Format::kJson) {
    context.out << json{{"schema", "memfathom.calibrate/1"},
                        {"done", false},
                        {"reason", "already calibrated"},
                        {"calibration", {{"id", calibration.id}, {"name", calibration.name}}}}
                       .dump(2)
                << '\n';
  } else {
    context.out << fmt::format(
        "nothing to do: {} was calibrated on {} with the same driver and libraries ({}); use "
        "--again to measure again\n",
        calibration.environment.gpu, calibration.created, calibration.id.substr(0, 12));
  }
  return ExitCode::kYes;
}

ExitCode stopped(const ProfileResult& profiled, const PreparedProfile& prepared, Context& context) {
  context.note(fmt::format(
      "stopped: {} of {} workloads are measured and saved; run the same command again to resume",
      profiled.samples.size(), prepared.plan.workloads.size()));
  return interrupted_code(profiled);
}

void print_result(const ProfileResult& profiled, const FitResult& fitted, Context& context) {
  if (context.format == Format::kJson) {
    json document{{"schema", "memfathom.calibrate/1"}, {"done", true}, {"run", profiled.run}};
    document.update(fit_json(fitted));
    document["samples"] = json::array();
    for (const Sample& sample : profiled.samples) {
      json row = to_json(sample);
      row.erase("workspaces");
      document["samples"].push_back(std::move(row));
    }
    context.out << document.dump(2) << '\n';
    return;
  }
  context.out << rendered(sample_table(profiled.samples, &fitted), context);
  if (context.format == Format::kCsv) return;  // one table a file
  context.out << '\n';
  print_fit(fitted, context);
}

// Estimates are for PyTorch jobs, not for the layers measured here.
void suggest_pytorch(const PreparedProfile& prepared, const Context& context) {
  const Environment& environment = prepared.environment;
  if (environment.framework != "memfathom" || environment.kind() != DeviceKind::kCuda) return;
  context.note(
      fmt::format("this calibrates memfathom's own layers; estimates are for PyTorch jobs: run "
                  "memfathom calibrate "
                  "--device {} --framework pytorch [--python PATH]",
                  prepared.campaign.device));
}

}  // namespace

ExitCode run_calibrate(const Arguments& arguments, Context& context) {
  ProfileOptions options;
  bool if_stale = false;
  bool again = false;
  OptionParser parser("calibrate");
  declare(parser, options);
  parser.flag("--if-stale", if_stale);
  parser.flag("--again", again);
  parser.parse(arguments);

  const PreparedProfile prepared = prepare(options);
  Store store = Store::open(database_path(context), Store::Mode::kReadWrite);
  const std::optional<Calibration> existing = store.calibration_for(prepared.environment);
  if (existing && !again && (if_stale || has_finished_run(store, prepared)))
    return nothing_to_do(*existing, context);
  for (const SkippedWorkload& left_out : prepared.plan.left_out)
    context.detail(fmt::format("{} is left out: {}", left_out.name, left_out.why));

  const ProfileResult profiled = profile(prepared, store, context);
  if (profiled.interrupted) return stopped(profiled, prepared, context);
  const FitResult fitted = fit_and_save(store, prepared.environment, context);
  print_result(profiled, fitted, context);
  suggest_pytorch(prepared, context);
  return fitted.saved.usable ? ExitCode::kYes : ExitCode::kNo;
}

}  // namespace memfathom

#include <fmt/format.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <ostream>

#include "cli/calibrate/context_points.h"
#include "cli/calibrate/fit_observations.h"
#include "cli/calibrate/fitting.h"
#include "cli/clock.h"
#include "cli/commands.h"
#include "cli/database.h"
#include "cli/option_parser.h"
#include "cli/render.h"
#include "core/atomic_file.h"
#include "core/error.h"
#include "core/json_io.h"
#include "fitter/outside_fit.h"
#include "fitter/residual_plot.h"
#include "profiler/campaign.h"

namespace memfathom {
namespace {

using nlohmann::json;

constexpr std::chrono::seconds kAskLimit{60};

// The environment of a run given by id prefix, or of a local device.
Environment environment_of(const Store& store, const std::string& run, const std::string& device) {
  if (run.empty()) return query_environment(own_probe_program(), device, kAskLimit).environment;
  for (const Run& known : store.runs()) {
    if (known.id.starts_with(run)) return known.environment;
  }
  throw Error(
      ErrorKind::kInput,
      fmt::format("no run has an id that begins with \"{}\"; `sqlite3` and docs/database.md "
                  "show them",
                  run));
}

void print_outside_fit(const OutsideFit& fit, const Calibration& saved, Context& context) {
  if (context.format == Format::kJson) {
    json gpus = json::array();
    for (const HeldOutGpu& gpu : fit.gpus)
      gpus.push_back(
          {{"gpu", gpu.gpu}, {"points", gpu.points}, {"median_error", gpu.median_error}});
    json calibration = to_json(saved);
    calibration.erase("ratios");
    context.out << json{{"schema", "memfathom.fit/1"},
                        {"calibration", std::move(calibration)},
                        {"usable", saved.usable},
                        {"rows", fit.lazy + fit.eager + fit.communicated},
                        {"held_out", std::move(gpus)}}
                       .dump(2)
                << '\n';
    return;
  }
  Table table({{"GPU left out"}, {"points", Align::kRight}, {"median error", Align::kRight}});
  for (const HeldOutGpu& gpu : fit.gpus)
    table.add_row(
        {gpu.gpu, std::to_string(gpu.points), fmt::format("{:.1f} %", 100 * gpu.median_error)});
  context.out << rendered(table, context);
  context.out << fmt::format(
      "{} lazy points, each GPU left out in turn: median error {:.1f} %, 90th percentile {:.1f} "
      "%; {} eager points, {} with NCCL\ncalibration {} ({}), {}\n",
      fit.lazy, 100 * fit.median_error, 100 * fit.p90_error, fit.eager, fit.communicated,
      saved.name, saved.id.substr(0, 12), saved.usable ? "usable" : "refused: " + saved.refusal);
}

// --contexts: what processes hold outside the allocator, from a file of reported figures.
ExitCode fit_contexts(const std::string& file, const std::string& provenance, Context& context) {
  const ContextPoints read = read_context_points(file);
  for (const std::string& reason : read.skipped) context.detail(reason);
  const OutsideFit fit = fit_outside(read.points);
  Calibration calibration = fit.calibration;
  calibration.environment.gpu = "any NVIDIA GPU";
  calibration.environment.framework = "pytorch";
  calibration.created = utc_now();
  calibration.provenance = provenance;
  Store store = Store::open(database_path(context), Store::Mode::kReadWrite);
  const Calibration saved = store.save_calibration(std::move(calibration));
  print_outside_fit(fit, saved, context);
  return saved.usable ? ExitCode::kYes : ExitCode::kNo;
}

}  // namespace

ExitCode run_fit(const Arguments& arguments, Context& context) {
  std::string device = "cpu";
  std::string run;
  OptionParser parser("fit");
  parser.option("--device", device);
  parser.option("--run", run);
  std::string plot;
  ObservationFit observed;
  parser.option("--plot", plot);
  parser.option("--observations", observed.gpus);
  parser.option("--name", observed.name);
  parser.option("--framework-version", observed.framework_version);
  parser.option("--provenance", observed.provenance);
  std::string contexts;
  parser.option("--contexts", contexts);
  parser.parse(arguments);
  if (!contexts.empty()) return fit_contexts(contexts, observed.provenance, context);

  Store store = Store::open(database_path(context), Store::Mode::kReadWrite);
  const FitResult fitted = observed.gpus.empty()
                               ? fit_and_save(store, environment_of(store, run, device), context)
                               : fit_observations(observed, store, context);
  if (!plot.empty()) write_file_atomically(plot, residual_plot(fitted.summary));
  if (context.format == Format::kJson) {
    json document{{"schema", "memfathom.fit/1"}};
    document.update(fit_json(fitted));
    context.out << document.dump(2) << '\n';
  } else {
    print_fit(fitted, context);
  }
  return fitted.saved.usable ? ExitCode::kYes : ExitCode::kNo;
}

}  // namespace memfathom

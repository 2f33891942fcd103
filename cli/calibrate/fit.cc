#include <fmt/format.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <ostream>

#include "cli/calibrate/fit_observations.h"
#include "cli/calibrate/fitting.h"
#include "cli/commands.h"
#include "cli/database.h"
#include "cli/option_parser.h"
#include "cli/render.h"
#include "core/atomic_file.h"
#include "core/error.h"
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
  parser.parse(arguments);

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

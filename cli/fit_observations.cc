#include "cli/fit_observations.h"

#include <fmt/format.h>

#include <ostream>

#include "cli/clock.h"
#include "cli/database.h"
#include "cli/estimation.h"
#include "core/document.h"
#include "core/error.h"
#include "db/store.h"
#include "estimator/gpus.h"
#include "estimator/job/read_job.h"
#include "fitter/fit.h"

namespace memfathom {
namespace {

Environment environment_of(const ObservationFit& what, const Gpu& gpu) {
  Environment environment;
  environment.gpu = std::string(gpu.product);
  environment.architecture = std::string(gpu.architecture);
  environment.memory_total = gpu.memory();
  environment.framework = "pytorch";
  environment.framework_version = what.framework_version;
  return environment;
}

// The job of an observation, replayed on the stack it was measured on.
FitRow row_of(const Observation& observation, const ObservationFit& what,
              const Estimation& estimation, int number) {
  Job job = read_job(parse_json(observation.job, fmt::format("observation {}", number), 0));
  if (job.target.stack.version.empty()) job.target.stack.version = what.framework_version;
  job.target.calibration = "none";
  const DryRun run = estimation.dry_run(job);
  FitRow row;
  row.id = fmt::format("{}/{}", observation.group, number);
  row.family = job_group(job, run);
  row.group = row.family;
  row.metric = observation.metric;
  row.measured = observation.bytes;
  row.fits = observation.fits;
  row.tag = Source::kPublished;
  row.replay = replayed(run);
  return row;
}

}  // namespace

ExitCode fit_observations(const ObservationFit& what, Context& context) {
  const Gpu& gpu = gpu_named(what.gpu, "--observations");
  Store store = Store::open(database_path(context), Store::Mode::kReadWrite);
  const Estimation estimation(context);
  std::vector<FitRow> rows;
  int number = 0;
  int skipped = 0;
  for (const Observation& observation : store.observations()) {
    ++number;
    if (observation.gpu != gpu.name || observation.metric != Metric::kDevice || !observation.bytes)
      continue;
    try {
      rows.push_back(row_of(observation, what, estimation, number));
    } catch (const Error& error) {
      ++skipped;
      context.detail(fmt::format("observation {}: {}", number, error.what()));
    }
  }
  if (skipped > 0)
    context.warn(
        fmt::format("{} observations could not be replayed; --verbose names them", skipped));
  FitOptions options;
  options.environment = environment_of(what, gpu);
  options.name = what.name.empty() ? fmt::format("{}/pytorch", gpu.name) : what.name;
  const FitSummary summary = fit(rows, std::vector<WorkspaceRow>{}, options);
  Calibration calibration = summary.calibration();
  calibration.created = utc_now();
  calibration.source = Source::kPublished;
  for (Coefficient& coefficient : calibration.coefficients) {
    if (!coefficient.prior_only) coefficient.source = Source::kPublished;
  }
  calibration.provenance = what.provenance;
  const Calibration saved = store.save_calibration(std::move(calibration));
  context.out << (context.verbose ? summary.full() : summary.brief()) << "\nsaved as " << saved.name
              << ", id " << saved.id << '\n';
  return saved.usable ? ExitCode::kYes : ExitCode::kNo;
}

}  // namespace memfathom

#include "cli/calibrate/fitting.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <ostream>

#include "cli/clock.h"
#include "core/coefficients.h"
#include "core/interval.h"
#include "core/json_io.h"
#include "core/quantile.h"

namespace memfathom {
namespace {

using nlohmann::json;

constexpr double kReportedLevel = 0.9;

double predicted(const Calibration& calibration, const ReplayedJob& replay) {
  return predict_device(replay, constants_of(calibration).data());
}

std::string percent(double fraction) { return fmt::format("{:+.2f} %", 100 * fraction); }

std::string shown(const std::optional<Bytes>& bytes) {
  return bytes ? fmt::format("{:.1f}", bytes->mib()) : "-";
}

// memfathom's own calibration of this GPU separates the bare context from what PyTorch adds;
// otherwise the newest one of the same architecture.
std::optional<Calibration> parent_of(const Store& store, const Environment& environment) {
  if (environment.framework == "pytorch") {
    Environment bare = environment;
    bare.framework = "memfathom";
    if (std::optional<Calibration> own = store.newest_of_device(bare)) return own;
  }
  std::vector<Calibration> siblings = store.architecture_siblings(environment);
  if (siblings.empty()) return std::nullopt;
  return std::move(siblings.back());
}

}  // namespace

FitResult fit_and_save(Store& store, const Environment& environment, const Context& context) {
  FitResult fitted;
  const FitOptions options = fit_options(environment);
  fitted.input = fit_input(store, environment, options);
  for (const std::string& sentence : fitted.input.skipped) context.warn(sentence);
  for (const std::string& sentence : fitted.input.notes) context.warn(sentence);
  const std::optional<Calibration> parent = parent_of(store, environment);
  fitted.summary =
      fit(fitted.input.rows, fitted.input.workspaces, options, parent ? &*parent : nullptr);
  Calibration calibration = fitted.summary.calibration();
  calibration.created = utc_now();
  calibration.source = environment.is_virtual() ? Source::kDefault : Source::kMeasured;
  calibration.provenance =
      environment.is_virtual()
          ? "samples from a simulated GPU, not measurements"
          : fmt::format("{} jobs measured on this machine, {} of them for validation",
                        fitted.input.rows.size(),
                        std::count_if(fitted.input.rows.begin(), fitted.input.rows.end(),
                                      [](const FitRow& row) { return row.validation; }));
  CollectivesFit collectives = fit_collectives(fitted.input.collectives, options.quantum);
  for (const std::string& note : collectives.notes) context.warn(note);
  append_coefficients(std::move(collectives.coefficients), calibration);
  fitted.saved = store.save_calibration(std::move(calibration));
  return fitted;
}

PredictionError validation_error(const FitResult& fitted) {
  PredictionError error;
  std::vector<double> errors;
  int covered = 0;
  for (const FitRow& row : fitted.input.rows) {
    if (!row.validation || row.is_censored()) continue;
    const double measured = static_cast<double>(row.measured->count());
    const double guess = predicted(fitted.saved, row.replay);
    errors.push_back(std::abs(guess - measured) / measured);
    const PredictionInterval interval =
        prediction_interval(fitted.saved, row.interval_group(),
                            Bytes{static_cast<std::int64_t>(guess)}, kReportedLevel);
    if (interval.low <= *row.measured && *row.measured <= interval.high) ++covered;
  }
  error.rows = static_cast<int>(errors.size());
  if (errors.empty()) return error;
  error.median = quantile(errors, 0.5);
  error.p90 = quantile(errors, 0.9);
  error.coverage = static_cast<double>(covered) / static_cast<double>(errors.size());
  return error;
}

void print_fit(const FitResult& fitted, Context& context) {
  context.out << (context.verbose ? fitted.summary.full() : fitted.summary.brief() + "\n");
  const PredictionError error = validation_error(fitted);
  if (error.rows > 0) {
    context.out << fmt::format(
        "{} jobs kept for validation: median error {:.2f} %, 90th percentile {:.2f} %, {:.0f} % "
        "within the 90 % interval\n",
        error.rows, 100 * error.median, 100 * error.p90, 100 * error.coverage);
  }
  context.out << fmt::format("calibration {} ({}), {}\n", fitted.saved.name,
                             fitted.saved.id.substr(0, 12),
                             fitted.saved.usable ? "usable" : "refused");  // the summary says why
}

json fit_json(const FitResult& fitted) {
  const PredictionError error = validation_error(fitted);
  json calibration = to_json(fitted.saved);
  calibration.erase("covariance");
  calibration.erase("ratios");
  return {{"calibration", std::move(calibration)},
          {"usable", fitted.saved.usable},
          {"rows", fitted.input.rows.size()},
          {"failed_samples", fitted.input.failed},
          {"notes", fitted.summary.notes},
          {"validation",
           {{"rows", error.rows},
            {"median_error", error.median},
            {"p90_error", error.p90},
            {"coverage_90", error.coverage}}}};
}

Table sample_table(const std::vector<Sample>& samples, const FitResult* fitted) {
  std::map<std::string, const FitRow*> rows;
  if (fitted != nullptr) {
    for (const FitRow& row : fitted->input.rows) rows[row.id] = &row;
  }
  Table table({{"workload"},
               {"for"},
               {"status"},
               {"reserved MiB", Align::kRight},
               {"replay MiB", Align::kRight},
               {"device MiB", Align::kRight},
               {"predicted MiB", Align::kRight},
               {"error", Align::kRight},
               {"repeats", Align::kRight},
               {"ms/step", Align::kRight}});
  for (const Sample& sample : samples) {
    const bool good = sample.status == SampleStatus::kOk;
    const auto row = good ? rows.find(sample.workload) : rows.end();
    std::string replay = "-";
    std::string guess = "-";
    std::string error = "-";
    if (row != rows.end() && sample.device_peak) {
      const double bytes = predicted(fitted->saved, row->second->replay);
      replay = shown(row->second->replay.reserved_peak);
      guess = fmt::format("{:.1f}", bytes / (1 << 20));
      error = percent(bytes / static_cast<double>(sample.device_peak->count()) - 1);
    }
    table.add_row(
        {sample.workload, sample.validation ? "validation" : "fit",
         Cell(to_string(sample.status), good ? Style::kPlain : Style::kWarning),
         shown(sample.reserved_peak), replay, shown(sample.device_peak), guess, error,
         std::to_string(sample.repeats),
         sample.seconds_per_step ? fmt::format("{:.1f}", 1000 * *sample.seconds_per_step) : "-"});
  }
  return table;
}

}  // namespace memfathom

#include "fitter/validation.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "core/coefficients.h"
#include "core/interval.h"
#include "core/quantile.h"

namespace memfathom {
namespace {

constexpr int kMaxFamilyFolds = 20;
constexpr int kMinRowsForCoverageTest = 19;
constexpr std::size_t kRowsOfAFold = 40;  // where folds count alike

double error_of(const HeldOutRatio& row) { return std::abs(row.predicted / row.measured - 1); }

std::vector<double> sorted_errors(const std::vector<HeldOutRatio>& rows) {
  std::vector<double> errors;
  for (const HeldOutRatio& row : rows) errors.push_back(error_of(row));
  std::sort(errors.begin(), errors.end());
  return errors;
}

std::vector<HeldOutRatio> held_out(const RowList& rows, const std::vector<int>& fold,
                                   const SolverSetup& setup, const FitOptions& options) {
  const std::vector<double> predicted = held_out_predictions(rows, fold, setup, options);
  std::vector<HeldOutRatio> ratios;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (rows[i]->is_censored()) continue;
    const auto measured = static_cast<double>(rows[i]->measured->count());
    ratios.push_back(
        {rows[i]->interval_group(), 1, fold[i], measured, std::max(predicted[i], 1.0)});
  }
  return ratios;
}

// The same number of rows of every fold, whatever it has, as one group: each counts alike.
std::vector<HeldOutRatio> evenly_by_fold(const std::vector<HeldOutRatio>& rows) {
  std::map<int, std::vector<HeldOutRatio>> folds;
  for (const HeldOutRatio& row : rows) folds[row.fold].push_back(row);
  std::vector<HeldOutRatio> even;
  for (const auto& [fold, own] : folds) {
    for (std::size_t i = 0; i < kRowsOfAFold; ++i) {
      even.push_back(own[i * own.size() / kRowsOfAFold]);
      even.back().group.clear();
    }
  }
  return even;
}

double default_error(const RowList& rows, const std::string& framework) {
  const Constants constants = default_constants(framework);
  std::vector<double> errors;
  for (const FitRow* row : rows) {
    if (row->is_censored()) continue;
    const auto measured = static_cast<double>(row->measured->count());
    errors.push_back(std::abs(predict_device(row->replay, constants.data()) / measured - 1));
  }
  return median(std::move(errors));
}

void add_points(const RowList& rows, const std::vector<HeldOutRatio>& ratios,
                const Solution& solution, bool validation, std::vector<ResidualPoint>* points) {
  std::size_t next = 0;
  for (const FitRow* row : rows) {
    if (row->is_censored()) continue;
    const HeldOutRatio& held = ratios[next++];
    const bool outlier = std::abs(held.predicted - held.measured) >
                         kTukeyCutoff * solution.noise.sigma(held.measured, row->noise_class());
    points->push_back({row->interval_group(), held.predicted, held.measured / held.predicted,
                       outlier, validation});
  }
}

void publish_errors(const std::vector<HeldOutRatio>& rows, Quality* quality) {
  if (rows.empty()) return;
  const std::vector<double> errors = sorted_errors(rows);
  quality->held_out_median_error = median(errors);
  quality->held_out_p90_error = errors[(errors.size() - 1) * 9 / 10];
  const auto under = std::count_if(rows.begin(), rows.end(), [](const HeldOutRatio& row) {
    return row.predicted < 0.9 * row.measured;
  });
  quality->under_by_10_percent = static_cast<double>(under) / static_cast<double>(rows.size());
}

}  // namespace

Validated validate(const RowList& device, const RowList& kept, const SolverSetup& setup,
                   const Solution& solution, const FitOptions& options, FitSummary* summary) {
  SolverSetup folded = setup;
  folded.noise = &solution.noise;
  folded.start = solution.value;
  Validated validated;
  const int folds = std::min(options.folds, static_cast<int>(device.size()));
  validated.random =
      held_out(device, random_folds(device.size(), folds, options.seed + 1), folded, options);
  const FamilyFolds by_family = family_folds(device, kMaxFamilyFolds);
  summary->families = by_family.families;
  if (by_family.families >= 2)
    validated.families = held_out(device, by_family.fold, folded, options);
  for (const FitRow* row : kept) {
    if (row->is_censored()) continue;
    const auto measured = static_cast<double>(row->measured->count());
    validated.kept.push_back(
        {row->interval_group(), 1, 0, measured, std::max(solution.predict(*row), 1.0)});
  }

  const bool only_unseen = options.for_unseen_families && !validated.families.empty();
  if (only_unseen) validated.random = evenly_by_fold(validated.families);

  Calibration& calibration = summary->result;
  summary->knee = interval_knee(validated.random, options);
  for (std::vector<HeldOutRatio>* rows : {&validated.random, &validated.families, &validated.kept})
    scale_ratios(summary->knee, rows);
  calibration.ratios = ratio_groups(validated.random, options);
  if (!only_unseen && !validated.families.empty()) {
    RatioGroup unseen{std::string(kUnseenGroup), {}};
    for (const HeldOutRatio& row : validated.families) unseen.ratios.push_back(row.ratio);
    std::sort(unseen.ratios.begin(), unseen.ratios.end());
    calibration.ratios.push_back(std::move(unseen));
  }
  summary->interval = ratio_interval(calibration.ratios.front().ratios, options.interval_level);

  publish_errors(only_unseen || validated.families.empty() ? validated.random : validated.families,
                 &calibration.quality);
  const Coverage coverage = validated.kept.empty()
                                ? cross_coverage(validated.random, options)
                                : coverage_of(validated.kept, calibration, options.interval_level);
  if (coverage.rows > 0) calibration.quality.coverage_90 = coverage.share();
  calibration.quality.validation_rows = static_cast<int>(validated.kept.size());

  const bool has_kept = !validated.kept.empty();
  summary->fitted_median_error =
      median(sorted_errors(has_kept ? validated.kept : validated.random));
  summary->default_median_error =
      default_error(has_kept ? kept : device, options.environment.framework);
  add_points(device, only_unseen ? validated.families : validated.random, solution, false,
             &summary->points);
  add_points(kept, validated.kept, solution, true, &summary->points);
  return validated;
}

std::string refusal_of(const FitSummary& summary, const Validated& validated,
                       const FitOptions& options) {
  if (!summary.converged) return "the solver did not converge";
  if (summary.fitted_median_error > options.max_median_error) {
    return fmt::format("the median held-out error is {:.1f} %, more than {:.0f} %",
                       100 * summary.fitted_median_error, 100 * options.max_median_error);
  }
  if (summary.fitted_median_error > summary.default_median_error) {
    return fmt::format(
        "on rows it did not see its median error, {:.2f} %, is worse than that of the default "
        "constants, {:.2f} %",
        100 * summary.fitted_median_error, 100 * summary.default_median_error);
  }
  Coverage coverage = validated.kept.empty()
                          ? cross_coverage(validated.random, options)
                          : coverage_of(validated.kept, summary.result, options.interval_level);
  if (options.for_unseen_families) {
    // The rows of a family stand and fall together: as many were seen as there are families.
    coverage.covered = static_cast<int>(std::lround(coverage.share() * summary.families));
    coverage.rows = summary.families;
  }
  const double promised = summary.interval.level;  // fewer ratios than the level needs promise less
  if ((options.for_unseen_families || coverage.rows >= kMinRowsForCoverageTest) &&
      binomial_below(coverage.covered, coverage.rows, promised - options.coverage_tolerance) <
          options.coverage_significance) {
    return fmt::format("its {:.0f} % intervals cover only {} of {} rows that were not fitted",
                       100 * promised, coverage.covered, coverage.rows);
  }
  return "";
}

}  // namespace memfathom

#include "fitter/fit.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <string_view>

#include "core/coefficients.h"
#include "core/error.h"
#include "core/quantile.h"
#include "fitter/check_rows.h"
#include "fitter/conformal.h"
#include "fitter/priors.h"
#include "fitter/validation.h"

namespace memfathom {
namespace {

constexpr double kMostlyPrior = 0.5;  // a pull beyond it: the prior speaks louder than the data

struct Split {
  RowList device;  // fitted
  RowList kept;    // device rows for validation
  RowList all;     // fitted rows of every metric, for the diagnosis
};

Split split_rows(const std::vector<FitRow>& rows) {
  Split split;
  for (const FitRow& row : rows) {
    if (row.weight <= 0) continue;
    if (row.validation) {
      if (row.metric == Metric::kDevice) split.kept.push_back(&row);
      continue;
    }
    split.all.push_back(&row);
    if (row.metric == Metric::kDevice) split.device.push_back(&row);
  }
  return split;
}

// The median of what the replay leaves: where the base must be, give or take the modules.
double first_base(const RowList& rows) {
  std::vector<double> rest;
  for (const FitRow* row : rows) {
    if (!row->is_censored())
      rest.push_back(static_cast<double>((*row->measured - row->replay.reserved_peak).count()));
  }
  return std::max(median(std::move(rest)), 0.0);
}

SolverSetup first_setup(const RowList& rows, const ConstantPriors& prior_set,
                        const FitOptions& options) {
  SolverSetup setup;
  setup.priors = prior_set.priors;
  setup.quantum = static_cast<double>(options.quantum.count());
  // Families that differ by their constants scatter more than their libraries make them.
  setup.common_noise = options.for_unseen_families;
  setup.free = identifiable_constants(rows, options.min_rows_per_module);
  setup.start[kBase] = first_base(rows);
  for (int p = kFirstModule; p < kParameterCount; ++p) {
    const auto at = static_cast<std::size_t>(p);
    setup.start[at] =
        p < kSolvedConstants ? (setup.free[at] ? 0 : prior_set.priors[at].mean) : neutral(p);
  }
  return setup;
}

std::string unseparable_note(std::string_view name, double bytes) {
  return fmt::format(
      "{} cannot be separated from the other terms with these rows; fixed at its prior, {:.0f} MiB",
      name, bytes / (1 << 20));
}

// A missing term leans on the constants: its absence moved them by this much, and their errors say
// so.
double shift_variance(const Diagnosis& diagnosis, int parameter) {
  if (diagnosis.missing.empty()) return 0;
  const double shift = diagnosis.missing.front().shifts[static_cast<std::size_t>(parameter)];
  return shift * shift;
}

std::optional<Library> library_of(ConstantCondition condition) {
  switch (condition) {
    case ConstantCondition::kAlways: return std::nullopt;
    case ConstantCondition::kUsesCublas: return Library::kCublas;
    case ConstantCondition::kUsesCudnn: return Library::kCudnn;
    case ConstantCondition::kUsesCufft: return Library::kCufft;
  }
  return std::nullopt;
}

// An error of a library's workspace models is common to its jobs and looks like a part of its
// module.
double workspace_variance(const RowList& rows, const WorkspaceFit& workspaces, int parameter) {
  const ConstantCondition condition = module_of(parameter).condition;
  const std::optional<Library> library = library_of(condition);
  double error = 0;
  int requests = 0;
  for (const WorkspaceModelFit& model : workspaces.models) {
    if (model.library != library) continue;
    error += model.rows * model.held_out_median_error;
    requests += model.rows;
  }
  std::vector<double> held;
  for (const FitRow* row : rows) {
    if (applies_to(condition, row->replay))
      held.push_back(static_cast<double>(row->replay.workspaces.count()));
  }
  const double shift = requests == 0 ? 0 : error / requests * median(std::move(held));
  return shift * shift;
}

// How far the constants of families lie apart: the error of the next one's. From the mean distance,
// which one strange family moves less than the square. 0 where families share a constant.
double family_variance(const RowList& rows, const Solution& solution, const FitOptions& options) {
  if (!options.for_unseen_families) return 0;
  std::map<std::string, std::vector<double>> rest;
  for (const FitRow* row : rows) {
    if (!row->is_censored())
      rest[row->family].push_back(static_cast<double>(row->measured->count()) -
                                  solution.predict(*row));
  }
  double sum = 0;
  for (auto& [family, own] : rest) sum += std::abs(median(std::move(own)));
  constexpr double kToSigma = 1.2533;  // of a normal distribution
  const double sigma = rest.empty() ? 0 : kToSigma * sum / static_cast<double>(rest.size());
  const double of_the_next = sigma * small_sample_stretch(static_cast<int>(rest.size()));
  return of_the_next * of_the_next;
}

// What the solver saw as one base is a coefficient for each constant of every job: the context
// where a sibling under our own framework tells it, and the framework; any other is a part of these
// two.
std::vector<Coefficient> base_coefficients(const RowList& device, const Solution& solution,
                                           const Diagnosis& diagnosis,
                                           const ConstantPriors& prior_set,
                                           const FitOptions& options,
                                           std::vector<std::string>* notes) {
  const double page = static_cast<double>(options.quantum.count());
  const double variance =
      solution.variance(kBase) + shift_variance(diagnosis, kBase) +
      family_variance(device, solution, options) +
      page * page / 3;  // rounding up is common to all rows: it does not average out
  const double base = solution.value[kBase];
  const int rows = solution.rows_bearing[kBase];
  const bool mostly_prior = solution.pull[kBase] > kMostlyPrior;
  const Source source = mostly_prior ? Source::kDefault : Source::kFitted;
  std::vector<Coefficient> coefficients;
  for (std::size_t i = 0; i < kAlwaysCount; ++i) {
    coefficients.push_back(
        {std::string(kLibraryConstants[i].name), 0, 0, "bytes", Source::kDefault, true, 0});
  }
  const auto set = [&](std::size_t constant, double value, double error, Source from,
                       bool prior_only, int samples) {
    coefficients[constant] = {std::string(kLibraryConstants[constant].name),
                              value,
                              error,
                              "bytes",
                              from,
                              prior_only,
                              samples};
  };
  if (options.environment.framework == "memfathom" || !prior_set.context_known) {
    if (options.environment.framework != "memfathom") {
      notes->push_back(
          "one framework determines only the sum of context and framework; it is stored in "
          "context");
    }
    set(kContext, base, std::sqrt(variance), source, mostly_prior, rows);
    return coefficients;
  }
  const double context = std::min(prior_set.context.mean, base);
  set(kContext, context, prior_set.context.sigma, Source::kFitted, true, 0);
  set(kFramework, base - context,
      std::sqrt(variance + prior_set.context.sigma * prior_set.context.sigma), source, mostly_prior,
      rows);
  return coefficients;
}

// The covariance over the coefficients: the constants' block from the solver, the others on the
// diagonal.
void fill_covariance(const Solution& solution, Calibration* calibration) {
  const std::size_t n = calibration->coefficients.size();
  std::vector<double>& covariance = calibration->covariance;
  covariance.assign(n * n, 0.0);
  for (std::size_t i = 0; i < n; ++i) {
    const double error = calibration->coefficients[i].standard_error;
    covariance[i * n + i] = error * error;
  }
  const bool merged = calibration->coefficients[kFramework].standard_error == 0;
  const std::size_t base = merged ? kContext : kFramework;
  if (!merged) {
    const double context = calibration->coefficients[kContext].standard_error;
    covariance[kContext * n + kFramework] = covariance[kFramework * n + kContext] =
        -context * context;
  }
  for (int p = kBase; p < kSolvedConstants; ++p) {
    for (int q = kBase; q < kSolvedConstants; ++q) {
      if (p == q) continue;
      const std::size_t i = p == kBase ? base : constant_of(p);
      const std::size_t j = q == kBase ? base : constant_of(q);
      covariance[i * n + j] = solution.covariance_of(p, q);
    }
  }
}

void add_coefficients(const RowList& rows, const Solution& solution, const Solution& everything,
                      const SolverSetup& identified, const SolverSetup& setup,
                      const ConstantPriors& prior_set, const FitOptions& options,
                      const WorkspaceFit& workspaces, FitSummary* summary) {
  Calibration& calibration = summary->result;
  calibration.coefficients =
      base_coefficients(rows, solution, summary->diagnosis, prior_set, options, &summary->notes);
  for (int p = kFirstModule; p < kSolvedConstants; ++p) {
    const auto at = static_cast<std::size_t>(p);
    const std::string_view name = module_of(p).name;
    const bool determined = identified.free[at] && solution.pull[at] <= kMostlyPrior;
    // A module that the selection left out is 0 as far as these rows can tell; its error is what
    // the larger model says.
    const double left_out = everything.variance(p) + everything.value[at] * everything.value[at];
    const double variance = (setup.free[at] ? solution.variance(p) : left_out) +
                            shift_variance(summary->diagnosis, p) +
                            workspace_variance(rows, workspaces, p);
    const double prior_error = prior_set.priors[at].sigma;
    const double page = static_cast<double>(options.quantum.count());
    calibration.coefficients.push_back(
        {std::string(name), solution.value[at],
         determined ? std::sqrt(variance + page * page / 3) : prior_error, "bytes",
         determined ? Source::kFitted : Source::kDefault, !determined,
         determined ? everything.rows_bearing[at] : 0});
    if (!determined) summary->notes.push_back(unseparable_note(name, solution.value[at]));
  }
  const Solution& factors = summary->diagnosis.factors;
  for (int g = 0; g < kThetaCount; ++g) {
    const std::size_t at = static_cast<std::size_t>(kTheta) + static_cast<std::size_t>(g);
    const bool prior_only = factors.pull[at] > kMostlyPrior || factors.rows_bearing[at] == 0;
    calibration.coefficients.push_back({theta_name(static_cast<ThetaIndex>(g)), factors.value[at],
                                        std::sqrt(factors.variance(kTheta + g)), "1",
                                        prior_only ? Source::kDefault : Source::kFitted, prior_only,
                                        factors.rows_bearing[at]});
  }
  calibration.coefficients.insert(calibration.coefficients.end(), workspaces.coefficients.begin(),
                                  workspaces.coefficients.end());
  if (summary->knee > 0) {
    calibration.coefficients.push_back({std::string(kKneeName), summary->knee, 0, "bytes",
                                        Source::kFitted, false, calibration.samples});
  }
  fill_covariance(solution, &calibration);
}

std::vector<Outlier> list_outliers(const RowList& rows, const SolverSetup& setup,
                                   const Solution& solution) {
  const std::vector<RowInfluence> influence = influences(rows, setup, solution);
  std::vector<Outlier> outliers;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const FitRow& row = *rows[i];
    const bool contradicted = row.is_censored() && influence[i].z != 0;
    if (!contradicted && std::abs(influence[i].z) < kTukeyCutoff) continue;
    const Bytes reading = row.is_censored() ? row.capacity : *row.measured;
    outliers.push_back({row.id, static_cast<double>(reading.count()), solution.predict(row),
                        influence[i].z, influence[i].leverage, row.is_censored()});
  }
  std::stable_sort(outliers.begin(), outliers.end(), [](const Outlier& a, const Outlier& b) {
    return std::abs(a.z) > std::abs(b.z);
  });
  return outliers;
}

void require_valid(const FitOptions& options) {
  std::string why;
  if (!options.is_valid(&why)) throw Error(ErrorKind::kInput, "fit options: " + why);
}

}  // namespace

FitSummary fit(const std::vector<FitRow>& rows, const WorkspaceFit& workspaces,
               const FitOptions& options, const Calibration* parent) {
  require_valid(options);
  FitSummary summary;
  Calibration& calibration = summary.result;
  calibration.name = options.name;
  calibration.environment = options.environment;
  summary.workspaces = workspaces.models;
  calibration.refusal = impossible_row(rows, options);
  if (!calibration.refusal.empty()) return summary;

  const Split split = split_rows(rows);
  summary.censored =
      static_cast<int>(std::count_if(split.device.begin(), split.device.end(),
                                     [](const FitRow* row) { return row->is_censored(); }));
  calibration.samples = static_cast<int>(split.device.size()) - summary.censored;
  calibration.refusal = too_little_data(split.device, options);
  if (!calibration.refusal.empty()) return summary;

  ConstantPriors prior_set = constant_priors(options, parent);
  summary.notes = prior_set.notes;
  const SolverSetup identified = first_setup(split.device, prior_set, options);
  const Solution everything = solve(split.device, identified);

  SolverSetup setup = identified;
  setup.noise = &everything.noise;
  const Selection selection = select_modules(split.device, setup, options);
  summary.selection = selection.steps;
  setup.noise = nullptr;
  for (std::size_t p = kFirstModule; p < static_cast<std::size_t>(kSolvedConstants); ++p) {
    if (identified.free[p] && !selection.free[p]) setup.start[p] = 0;
  }
  setup.free = selection.free;
  const Solution solution = solve(split.device, setup);
  summary.converged = solution.converged && everything.converged;
  summary.iterations = everything.iterations + solution.iterations;
  summary.noise = solution.noise;
  summary.pull = solution.pull;

  const Validated validated =
      validate(split.device, split.kept, setup, solution, options, &summary);
  summary.diagnosis = diagnose(split.all, split.device, setup, solution, options);
  summary.outliers = list_outliers(split.device, setup, solution);
  add_coefficients(split.device, solution, everything, identified, setup, prior_set, options,
                   workspaces, &summary);
  calibration.refusal = refusal_of(summary, validated, options);
  calibration.usable = calibration.refusal.empty();
  return summary;
}

FitSummary fit(const std::vector<FitRow>& rows, const std::vector<WorkspaceRow>& workspaces,
               const FitOptions& options, const Calibration* parent) {
  require_valid(options);
  return fit(rows, fit_workspaces(workspaces, options), options, parent);
}

}  // namespace memfathom

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/coefficients.h"
#include "fitter/fit.h"

namespace memfathom {
namespace {

constexpr double kMiB = 1 << 20;
constexpr std::size_t kMaxOutliersListed = 20;

std::string percent(const std::optional<double>& share) {
  return share.has_value() ? fmt::format("{:.2f} %", 100 * *share) : "not measured";
}

std::string value_of(const Coefficient& c) {
  if (c.unit == "bytes")
    return fmt::format("{:>10.1f} +- {:<8.1f} MiB", c.value / kMiB, c.standard_error / kMiB);
  return fmt::format("{:>10.4f} +- {:<8.4f}    ", c.value, c.standard_error);
}

void add_coefficient_lines(const FitSummary& summary, std::string* text) {
  *text += "\nCoefficients (value +- standard error, samples, pull of the prior)\n";
  for (const Coefficient& c : summary.result.coefficients) {
    std::string pull;
    for (std::size_t i = 0; i < kAlwaysCount; ++i) {
      if (c.name == kLibraryConstants[i].name) pull = fmt::format("{:.3f}", summary.pull[kBase]);
    }
    for (int p = kFirstModule; p < kSolvedConstants; ++p) {
      if (c.name == module_of(p).name)
        pull = fmt::format("{:.3f}", summary.pull[static_cast<std::size_t>(p)]);
    }
    if (c.name.rfind("theta.", 0) == 0) {
      for (int g = 0; g < kThetaCount; ++g) {
        if (c.name == theta_name(static_cast<ThetaIndex>(g))) {
          pull = fmt::format(
              "{:.3f}", summary.diagnosis.pull[std::size_t{kTheta} + static_cast<std::size_t>(g)]);
        }
      }
    }
    *text += fmt::format("  {:<40} {} {:>6}  {:<6} {}\n", c.name, value_of(c), c.samples,
                         c.prior_only ? "prior" : pull, describe_coefficient(c.name));
  }
}

void add_selection_lines(const FitSummary& summary, std::string* text) {
  *text += "\nModels tried (held-out loss; gain over the model before in standard errors)\n";
  for (const SelectionStep& step : summary.selection) {
    *text += fmt::format("  {:<60} {:>8.4f} {:>7.2f}  {}\n", step.model, step.held_out_loss,
                         step.gain, step.kept ? "kept" : "");
  }
}

void add_diagnosis_lines(const FitSummary& summary, std::string* text) {
  *text += "\nDiagnosis\n";
  if (summary.diagnosis.missing.empty()) *text += "  no missing term shows in the residuals\n";
  for (const MissingTerm& term : summary.diagnosis.missing) {
    *text += fmt::format("  {} ({:.1f} standard errors, explains {:.0f} % of what is left)\n",
                         term.sentence, term.z, 100 * term.explains);
  }
  for (const ReplayCheck& check : summary.diagnosis.checks) {
    *text += fmt::format(
        "  {} {} rows: measured / replayed has median {:.4f}, nine in ten within {:.2f} %\n",
        check.rows, to_string(check.metric), check.median_ratio, 100 * check.p90_error);
  }
}

void add_outlier_lines(const FitSummary& summary, std::string* text) {
  *text += fmt::format("\nOutliers: {} of {} rows; they keep their place in the intervals\n",
                       summary.outliers.size(), summary.result.samples + summary.censored);
  for (std::size_t i = 0; i < std::min(summary.outliers.size(), kMaxOutliersListed); ++i) {
    const Outlier& o = summary.outliers[i];
    *text += fmt::format(
        "  {:<40} {} {:>10.1f} MiB, predicted {:>10.1f} MiB, {:+.1f} sigma, leverage {:.3f}\n",
        o.id, o.censored ? "contradicts" : "measured   ", o.measured / kMiB, o.predicted / kMiB,
        -o.z, o.leverage);
  }
  if (summary.outliers.size() > kMaxOutliersListed) {
    *text += fmt::format("  and {} more\n", summary.outliers.size() - kMaxOutliersListed);
  }
}

void add_workspace_lines(const FitSummary& summary, std::string* text) {
  if (summary.workspaces.empty()) return;
  *text += "\nWorkspace models\n";
  for (const WorkspaceModelFit& model : summary.workspaces) {
    const std::string name = fmt::format("{} {}", to_string(model.library), model.operation);
    if (!model.refusal.empty()) {
      *text += fmt::format("  {:<40} no model: {}\n", name, model.refusal);
      continue;
    }
    *text += fmt::format(
        "  {:<40} {} ({} requests; held-out median error {:.1f} %, {:.0f} % within 10 %)\n", name,
        model.terms, model.rows, 100 * model.held_out_median_error, 100 * model.within_10_percent);
  }
}

}  // namespace

std::string FitSummary::brief() const {
  const std::string name = result.name.empty() ? "calibration" : result.name;
  if (result.coefficients.empty()) return fmt::format("{}: not usable: {}", name, result.refusal);
  const std::string missing =
      diagnosis.missing.empty() ? "" : fmt::format("; {}", diagnosis.missing.front().sentence);
  return fmt::format(
      "{}: {}{} samples, constant {:.0f} MiB, held-out error median {} p90 {}, {:.0f} % interval "
      "x{:.4f}..x{:.4f}{}, {} outliers{}",
      name, usable() ? "" : fmt::format("not usable: {}; ", result.refusal), result.samples,
      (result.value_of("context", 0) + result.value_of("framework", 0)) / kMiB,
      percent(result.quality.held_out_median_error), percent(result.quality.held_out_p90_error),
      100 * interval.level, interval.low, interval.high,
      knee > 0 ? fmt::format(" (absolute below {:.0f} MiB)", knee / kMiB) : "", outliers.size(),
      missing);
}

std::string FitSummary::full() const {
  std::string text = brief() + "\n";
  if (result.coefficients.empty()) return text;
  text += fmt::format(
      "\nSolver: {} after {} iterations. Noise: {:.3f} % of a job, absolute below {:.0f} MiB, "
      "pages of {}.\n",
      converged ? "converged" : "did not converge", iterations, 100 * noise.all.relative,
      noise.all.knee / kMiB, to_string(Bytes{static_cast<std::int64_t>(noise.quantum)}));
  for (const std::string& note : notes) text += fmt::format("Note: {}.\n", note);
  add_coefficient_lines(*this, &text);
  add_selection_lines(*this, &text);
  text += fmt::format(
      "\nOn rows not fitted: median error {:.2f} % (default constants {:.2f} %), published by {} "
      "held-out {} {}; "
      "coverage of the {:.0f} % interval {}\n",
      100 * fitted_median_error, 100 * default_median_error,
      families >= 2 ? "leaving out families," : "random folds,", families,
      families == 1 ? "family" : "families", 100 * interval.level,
      percent(result.quality.coverage_90));
  for (const RatioGroup& group : result.ratios) {
    if (group.ratios.empty()) continue;
    const RatioInterval own = ratio_interval(group.ratios, interval.level);
    text += fmt::format("  interval of {:<24} x{:.4f}..x{:.4f} from {} ratios\n",
                        group.group.empty() ? "all" : group.group, own.low, own.high,
                        group.ratios.size());
  }
  add_diagnosis_lines(*this, &text);
  add_workspace_lines(*this, &text);
  add_outlier_lines(*this, &text);
  return text;
}

}  // namespace memfathom

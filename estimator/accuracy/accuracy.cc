#include "estimator/accuracy/accuracy.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <tuple>
#include <utility>

#include "core/quantile.h"
#include "estimator/accuracy/interval_study.h"
#include "estimator/accuracy/recalibration.h"
#include "estimator/accuracy/scored_job.h"

namespace memfathom {
namespace {

using nlohmann::json;

constexpr double kLevel = 0.9;  // of the intervals

struct AccuracyLine {
  int rows = 0;
  std::vector<double> errors;
  std::vector<double> widths;
  int answered = 0, covered = 0, right = 0, verdicts = 0;
};

std::map<std::string, AccuracyLine> lines_of(const std::vector<ScoredJob>& scores, bool by_group) {
  std::map<std::string, AccuracyLine> lines;
  for (const ScoredJob& scored : scores) {
    if (scored.left_out) continue;
    const MeasuredJob& row = *scored.row;
    AccuracyLine& line =
        lines[fmt::format("{}:{}", by_group && !row.group.empty() ? row.group : row.dataset,
                          row.fits ? "verdict" : to_string(row.metric))];
    ++line.rows;
    if (!scored.answered) continue;
    ++line.answered;
    if (row.fits) {
      ++line.verdicts;
      line.right += scored.verdict_right ? 1 : 0;
      continue;
    }
    line.errors.push_back(scored.error);
    line.widths.push_back(scored.width);
    line.covered += scored.covered ? 1 : 0;
  }
  return lines;
}

double share_of(std::ptrdiff_t part, std::size_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

// The shares that a binomial count of `trials` lies between in 95 of 100 cases.
std::pair<double, double> binomial_band(std::size_t trials, double probability) {
  constexpr double kTail = 0.025;
  const auto count = static_cast<double>(trials);
  double below = 0;  // the probability of fewer than `hits`
  double low = 0;
  for (std::size_t hits = 0; hits <= trials; ++hits) {
    const auto now = static_cast<double>(hits);
    const double log_ways =
        std::lgamma(count + 1) - std::lgamma(now + 1) - std::lgamma(count - now + 1);
    const double up_to = below + std::exp(log_ways + now * std::log(probability) +
                                          (count - now) * std::log1p(-probability));
    if (below <= kTail && up_to > kTail) low = now / count;
    if (up_to >= 1 - kTail) return {low, now / count};
    below = up_to;
  }
  return {low, 1};
}

AccuracyRow summarize(const std::string& name, const AccuracyLine& line, bool has_intervals) {
  AccuracyRow summary;
  summary.name = name;
  summary.rows = line.rows;
  summary.answered = line.answered;
  if (line.verdicts > 0) summary.right = share_of(line.right, line.answered);
  if (line.errors.empty()) return summary;
  std::vector<double> sizes = line.errors;
  for (double& error : sizes) error = std::abs(error);
  summary.median = quantile(sizes, 0.5);
  summary.p90 = quantile(sizes, 0.9);
  summary.under = share_of(std::count_if(line.errors.begin(), line.errors.end(),
                                         [](double error) { return error < -0.1; }),
                           line.errors.size());
  if (!has_intervals) return summary;
  summary.coverage = share_of(line.covered, line.errors.size());
  std::tie(summary.band_low, summary.band_high) = binomial_band(line.errors.size(), kLevel);
  summary.width = quantile(line.widths, 0.5);
  summary.spread = quantile(line.errors, 0.95) - quantile(line.errors, 0.05);
  return summary;
}

json to_json(const AccuracyRow& summary) {
  json entry{{"data", summary.name}, {"rows", summary.rows}, {"answered", summary.answered}};
  const auto add = [&](const char* key, const std::optional<double>& value) {
    if (value) entry[key] = *value;
  };
  add("median_error", summary.median);
  add("p90_error", summary.p90);
  add("under_by_10_percent", summary.under);
  add("coverage", summary.coverage);
  add("coverage_band_low", summary.band_low);
  add("coverage_band_high", summary.band_high);
  add("median_width", summary.width);
  add("error_spread", summary.spread);
  add("verdicts_right", summary.right);
  return entry;
}

}  // namespace

AccuracyReport measure_accuracy(const AccuracyRequest& request, const Estimator& estimator) {
  std::vector<MeasuredJob> rows = read_measured_jobs(request.data, request.filter);
  std::vector<ScoredJob> scores = score_without(rows, estimator, request.left_out);
  AccuracyReport report;
  for (const ScoredJob& scored : scores) {
    if (!scored.refusal.empty())
      report.refusals.push_back(fmt::format("{}: {}", scored.row->id, scored.refusal));
  }
  report.reliability = reliability_of(scores);
  set_brier(scores, report);
  if (request.anchors > 0) calibrate_by_anchors(scores, estimator, request.anchors);
  if (request.folds > 0) calibrate_by_folds(scores, request.folds);
  const bool recalibrated = request.anchors > 0 || request.folds > 0;
  for (const auto& [name, line] : lines_of(scores, request.by_group)) {
    // The intervals belong to the constants that recalibration replaced.
    report.rows.push_back(summarize(name, line, name.ends_with(":device") && !recalibrated));
  }
  return report;
}

json accuracy_json(const AccuracyReport& report) {
  json list = json::array();
  for (const AccuracyRow& row : report.rows) list.push_back(to_json(row));
  json curve = json::array();
  for (const ReliabilityPoint& point : report.reliability)
    curve.push_back({{"level", point.level}, {"coverage", point.coverage}});
  json document{{"schema", "memfathom.accuracy/1"}, {"data", list}, {"reliability", curve}};
  if (report.brier) {
    document["brier_score"] = *report.brier;
    document["verdicts"] = report.verdicts;
  }
  return document;
}

}  // namespace memfathom

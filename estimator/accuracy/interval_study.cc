#include "estimator/accuracy/interval_study.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <string>

#include "core/quantile.h"

namespace memfathom {
namespace {

constexpr std::array<double, 10> kLevels{0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95};
constexpr std::size_t kRowsPerSource = 60;  // more rows of one source say nothing about others

// "published/fms/7" and the group "published/fms" come from one source.
std::string source_of(const MeasuredJob& row) {
  const std::string& name = row.group.empty() ? row.dataset : row.group;
  const std::size_t slash = name.find('/');
  const std::size_t second = slash == std::string::npos ? slash : name.find('/', slash + 1);
  return row.dataset == "published" ? name.substr(0, second) : row.dataset;
}

// How far the rows of each source lie from their replays, relative to them.
std::map<std::string, std::vector<double>> deviations_by_source(
    const std::vector<ScoredJob>& scores) {
  std::map<std::string, std::vector<double>> deviations;
  for (const ScoredJob& scored : scores) {
    const MeasuredJob& row = *scored.row;
    if (!scored.answered || !row.bytes || row.metric != Metric::kDevice || scored.reserved <= 0)
      continue;
    const double replayed = static_cast<double>(row.bytes->count()) - scored.outside;
    deviations[source_of(row)].push_back(replayed / scored.reserved - 1);
  }
  return deviations;
}

// Nine in ten deviations of the other sources, of each at most so many, evenly spaced.
ReplayShares shares_without(const std::map<std::string, std::vector<double>>& deviations,
                            const std::string& source) {
  std::vector<double> others;
  for (const auto& [name, own] : deviations) {
    if (name == source) continue;
    const std::size_t taken = std::min(own.size(), kRowsPerSource);
    for (std::size_t i = 0; i < taken; ++i) others.push_back(own[i * own.size() / taken]);
  }
  if (others.empty()) return {};
  return {std::max(0.0, -quantile(others, 0.05)), std::max(0.0, quantile(others, 0.95))};
}

}  // namespace

std::vector<ScoredJob> score_without(std::vector<MeasuredJob>& rows, const Estimator& estimator,
                                     LeftOut left_out) {
  switch (left_out) {
    case LeftOut::kNothing: break;
    case LeftOut::kFamily:
      return score_all(rows, estimator, [](const MeasuredJob&) {
        IntervalStudy study;
        study.ignores_ratios = true;
        return study;
      });
    case LeftOut::kStack:
      for (MeasuredJob& row : rows) row.job.target.calibration = "auto";
      break;
    case LeftOut::kSource: {
      const auto deviations = deviations_by_source(score_all(rows, estimator));
      return score_all(rows, estimator, [&](const MeasuredJob& row) {
        IntervalStudy study;
        study.ignores_ratios = true;
        study.shares = shares_without(deviations, source_of(row));
        return study;
      });
    }
  }
  return score_all(rows, estimator);
}

std::vector<ReliabilityPoint> reliability_of(const std::vector<ScoredJob>& scores) {
  std::map<std::string, std::vector<double>> ranks;
  for (const ScoredJob& scored : scores) {
    if (scored.rank) ranks[scored.row->dataset].push_back(*scored.rank);
  }
  std::vector<ReliabilityPoint> points;
  if (ranks.empty()) return points;
  for (const double level : kLevels) {
    double sum = 0;
    for (const auto& [dataset, own] : ranks) {
      const auto covered = std::count_if(
          own.begin(), own.end(), [&](double rank) { return std::abs(rank - 0.5) <= level / 2; });
      sum += static_cast<double>(covered) / static_cast<double>(own.size());
    }
    points.push_back({level, sum / static_cast<double>(ranks.size())});
  }
  return points;
}

void set_brier(const std::vector<ScoredJob>& scores, AccuracyReport& report) {
  double sum = 0;
  for (const ScoredJob& scored : scores) {
    if (!scored.row->fits || !scored.probability) continue;
    sum += std::pow(*scored.probability - (*scored.row->fits ? 1.0 : 0.0), 2);
    ++report.verdicts;
  }
  if (report.verdicts > 0) report.brier = sum / report.verdicts;
}

}  // namespace memfathom

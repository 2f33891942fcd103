#include "estimator/accuracy/recalibration.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <string>

#include "core/parallel_for.h"
#include "core/quantile.h"

namespace memfathom {
namespace {

using Rows = std::vector<ScoredJob*>;

double measured_by(const ScoredJob& scored) {
  return static_cast<double>(scored.row->bytes->count());
}

// What a row says the constant of its GPU is: measured minus reserved.
double constant_of(const ScoredJob& scored) {
  return scored.outside - scored.error * measured_by(scored);
}

// The error of a row if its GPU's constant were `constant`.
void use_constant(ScoredJob& scored, double constant) {
  scored.error += (constant - scored.outside) / measured_by(scored);
  scored.outside = constant;
}

std::map<std::string, Rows> device_groups(std::vector<ScoredJob>& scores) {
  std::map<std::string, Rows> groups;
  for (ScoredJob& scored : scores) {
    const MeasuredJob& row = *scored.row;
    if (scored.answered && row.bytes && row.metric == Metric::kDevice && row.phase.empty())
      groups[row.group.empty() ? row.dataset : row.group].push_back(&scored);
  }
  return groups;
}

// So many of a group's rows, spread evenly over it.
Rows anchors_of(const Rows& rows, std::size_t count) {
  Rows anchors;
  for (std::size_t i = 0; i < count; ++i)
    anchors.push_back(rows[i * (rows.size() - 1) / std::max<std::size_t>(count - 1, 1)]);
  return anchors;
}

std::vector<double> constants_of(const Rows& rows) {
  std::vector<double> constants;
  constants.reserve(rows.size());
  for (const ScoredJob* row : rows) constants.push_back(constant_of(*row));
  return constants;
}

// How far the constants that the rows speak for lie apart, relative to what was measured.
double disagreement(const Rows& rows) {
  const double middle = median(constants_of(rows));
  double sum = 0;
  for (const ScoredJob* row : rows) sum += std::abs(constant_of(*row) - middle) / measured_by(*row);
  return sum;
}

// What rows that name neither GPU nor stack may have run on; as they are said otherwise.
struct AssumedEnvironment {
  const char* torch_version = "";
  int compute_capability = 0;  // 0: nobody knows
};
constexpr std::array<AssumedEnvironment, 5> kAssumedEnvironments{
    {{"", 75}, {"", 80}, {"1.13", 0}, {"1.13", 75}, {"1.13", 80}}};

bool is_of_unknown_gpu(const ScoredJob& scored) {
  const TargetSpec& target = scored.row->job.target;
  return target.gpu.empty() && target.compute_capability == 0 && target.stack.version.empty();
}

std::vector<ScoredJob> score_again(const Rows& rows, const AssumedEnvironment& reading,
                                   const Estimator& estimator) {
  std::vector<ScoredJob> scores(rows.size());
  parallel_for(rows.size(), [&](std::size_t i) {
    MeasuredJob read = *rows[i]->row;
    read.job.target.stack.version = reading.torch_version;
    read.job.target.compute_capability = reading.compute_capability;
    scores[i] = score(read, estimator);
    scores[i].row = rows[i]->row;
  });
  return scores;
}

// Scores the rows under the reading with which the anchors agree best.
void choose_environment(const Rows& rows, const Estimator& estimator, std::size_t anchors) {
  if (!std::all_of(rows.begin(), rows.end(),
                   [](const ScoredJob* row) { return is_of_unknown_gpu(*row); }))
    return;
  double least = disagreement(anchors_of(rows, anchors));
  for (const AssumedEnvironment& reading : kAssumedEnvironments) {
    std::vector<ScoredJob> scores = score_again(rows, reading, estimator);
    Rows read;
    for (ScoredJob& scored : scores) {
      if (!scored.answered) break;
      read.push_back(&scored);
    }
    if (read.size() < rows.size()) continue;
    const double apart = disagreement(anchors_of(read, anchors));
    if (apart >= least) continue;
    least = apart;
    for (std::size_t i = 0; i < rows.size(); ++i) *rows[i] = scores[i];
  }
}

}  // namespace

void calibrate_by_anchors(std::vector<ScoredJob>& scores, const Estimator& estimator,
                          std::size_t count) {
  for (auto& [name, rows] : device_groups(scores)) {
    if (rows.size() <= count) continue;
    choose_environment(rows, estimator, count);
    const Rows anchors = anchors_of(rows, count);
    const double constant = median(constants_of(anchors));
    for (ScoredJob* anchor : anchors) anchor->left_out = true;
    for (ScoredJob* row : rows) use_constant(*row, constant);
  }
}

void calibrate_by_folds(std::vector<ScoredJob>& scores, std::size_t folds) {
  if (folds == 0) return;
  for (auto& [name, rows] : device_groups(scores)) {
    if (rows.size() < 2 * folds) continue;
    std::vector<double> constants(folds);
    for (std::size_t fold = 0; fold < folds; ++fold) {
      std::vector<double> others;
      for (std::size_t i = 0; i < rows.size(); ++i) {
        if (i % folds != fold) others.push_back(constant_of(*rows[i]));
      }
      constants[fold] = median(others);
    }
    for (std::size_t i = 0; i < rows.size(); ++i) use_constant(*rows[i], constants[i % folds]);
  }
}

}  // namespace memfathom

#include "fitter/mixed_model.h"

#include <ceres/ceres.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>

#include "core/error.h"
#include "core/quantile.h"
#include "fitter/solver.h"

namespace memfathom {
namespace {

constexpr double kHuberCutoff = 1.345;
constexpr double kScaleOfMedian = 1.4826;  // of a normal distribution's absolute deviations
constexpr double kMinScale = 1e-3;
constexpr double kMinWidth = 1e-2;         // in units of the typical noise
constexpr double kHeavyTailedWidth = 0.5;  // in the same units
constexpr int kConvexRounds = 30;          // the widths converge slowly: EM takes small steps
constexpr int kRounds = 60;

void check_shapes(const std::vector<MixedRow>& rows,
                  const std::vector<std::optional<MixedPrior>>& priors) {
  if (rows.empty() || rows.size() < rows.front().terms.size()) {
    throw Error(ErrorKind::kInput,
                fmt::format("{} rows are too few for the coefficients of the fit", rows.size()));
  }
  for (const MixedRow& row : rows) {
    if (row.terms.size() != rows.front().terms.size() ||
        row.groups.size() != rows.front().groups.size() ||
        (!priors.empty() && priors.size() != row.terms.size()) || row.noise <= 0 ||
        row.group_factor <= 0)
      throw Error(ErrorKind::kInput, "rows of a fit must have the same terms and groups");
  }
}

// (x . coefficients + deviations - value) / sigma; block 0 has the coefficients, each further one
// a deviation.
class RowCost final : public ceres::CostFunction {
 public:
  RowCost(const MixedRow& row, double sigma, int deviations) : row_(row), sigma_(sigma) {
    set_num_residuals(1);
    mutable_parameter_block_sizes()->push_back(static_cast<int>(row.terms.size()));
    for (int d = 0; d < deviations; ++d) mutable_parameter_block_sizes()->push_back(1);
  }

  bool Evaluate(double const* const* blocks, double* residuals, double** jacobians) const override {
    const std::size_t count = parameter_block_sizes().size();
    double predicted = 0;
    for (std::size_t t = 0; t < row_.terms.size(); ++t) predicted += row_.terms[t] * blocks[0][t];
    for (std::size_t b = 1; b < count; ++b) predicted += row_.group_factor * blocks[b][0];
    residuals[0] = (predicted - row_.value) / sigma_;
    if (jacobians == nullptr) return true;
    if (jacobians[0] != nullptr) {
      for (std::size_t t = 0; t < row_.terms.size(); ++t) jacobians[0][t] = row_.terms[t] / sigma_;
    }
    for (std::size_t b = 1; b < count; ++b) {
      if (jacobians[b] != nullptr) jacobians[b][0] = row_.group_factor / sigma_;
    }
    return true;
  }

 private:
  const MixedRow& row_;
  double sigma_;
};

// (parameters[index] - mean) / deviation.
class PriorCost final : public ceres::CostFunction {
 public:
  PriorCost(int size, int index, const MixedPrior& prior) : index_(index), prior_(prior) {
    set_num_residuals(1);
    mutable_parameter_block_sizes()->push_back(size);
  }

  bool Evaluate(double const* const* blocks, double* residuals, double** jacobians) const override {
    residuals[0] = (blocks[0][index_] - prior_.mean) / prior_.deviation;
    if (jacobians == nullptr || jacobians[0] == nullptr) return true;
    std::fill_n(jacobians[0], parameter_block_sizes()[0], 0.0);
    jacobians[0][index_] = 1 / prior_.deviation;
    return true;
  }

 private:
  int index_;
  MixedPrior prior_;
};

class MixedSolver {
 public:
  MixedSolver(const std::vector<MixedRow>& rows, const MixedOptions& options)
      : rows_(rows), options_(options) {
    const std::size_t kinds = rows.front().groups.size();
    fit_.coefficients.assign(rows.front().terms.size(), 0);
    fit_.deviations.resize(kinds);
    fit_.widths.assign(kinds, typical_noise());
    for (std::size_t k = 0; k < options.heavy_tailed && k < kinds; ++k)
      fit_.widths[k] = kHeavyTailedWidth * typical_noise();
    for (const MixedRow& row : rows) {
      for (std::size_t k = 0; k < kinds; ++k) {
        if (!row.groups[k].empty()) fit_.deviations[k].emplace(row.groups[k], 0.0);
      }
    }
  }

  MixedFit run() {
    for (int round = 0; round < kRounds; ++round) {
      solve(round < kConvexRounds);
      fit_.scale = robust_scale();
      update_widths();
    }
    set_standard_errors();
    return fit_;
  }

 private:
  // In the unit of the deviations.
  double typical_noise() const {
    std::vector<double> noise;
    for (const MixedRow& row : rows_) noise.push_back(row.noise / row.group_factor);
    return median(std::move(noise));
  }

  double robust_scale() const {
    std::vector<double> sizes;
    for (const MixedRow& row : rows_)
      sizes.push_back(std::abs(fit_.predict(row) - row.value) / row.noise);
    return std::max(kScaleOfMedian * median(std::move(sizes)), kMinScale);
  }

  bool is_outlier(const MixedRow& row) const {
    return std::abs(fit_.predict(row) - row.value) > kTukeyCutoff * fit_.scale * row.noise;
  }

  // The width of a kind is the root mean square of its deviations with their own uncertainty,
  // which is what remains of the width where rows say little (one step of EM).
  void update_widths() {
    const double least = kMinWidth * typical_noise();
    for (std::size_t k = options_.heavy_tailed; k < fit_.widths.size(); ++k) {
      const double prior = 1 / std::pow(fit_.widths[k], 2);
      double sum = 0;
      for (const auto& [group, deviation] : fit_.deviations[k]) {
        double precision = prior;
        for (const MixedRow& row : rows_) {
          if (row.groups[k] == group && !is_outlier(row))
            precision += std::pow(row.group_factor / (fit_.scale * row.noise), 2);
        }
        sum += deviation * deviation + 1 / precision;
      }
      if (!fit_.deviations[k].empty())
        fit_.widths[k] =
            std::max(least, std::sqrt(sum / static_cast<double>(fit_.deviations[k].size())));
    }
  }

  void solve(bool is_convex) {
    ceres::Problem problem;
    for (const MixedRow& row : rows_) {
      std::vector<double*> blocks{fit_.coefficients.data()};
      for (std::size_t k = 0; k < row.groups.size(); ++k) {
        if (!row.groups[k].empty()) blocks.push_back(&fit_.deviations[k].at(row.groups[k]));
      }
      auto cost = std::make_unique<RowCost>(row, fit_.scale * row.noise,
                                            static_cast<int>(blocks.size()) - 1);
      ceres::LossFunction* loss = nullptr;
      if (is_convex) {
        loss = new ceres::HuberLoss(kHuberCutoff);
      } else {
        loss = new ceres::TukeyLoss(kTukeyCutoff);
      }
      problem.AddResidualBlock(cost.release(), loss, blocks);
    }
    add_priors(problem);
    ceres::Solver::Options options;
    options.linear_solver_type = ceres::DENSE_QR;
    options.logging_type = ceres::SILENT;
    options.max_num_iterations = 200;
    ceres::Solver::Summary summary;
    ceres::Solve(options, &problem, &summary);
    fit_.converged = summary.termination_type == ceres::CONVERGENCE;
  }

  void add_priors(ceres::Problem& problem) {
    const int size = static_cast<int>(fit_.coefficients.size());
    const std::vector<std::optional<MixedPrior>>& priors = options_.priors;
    for (std::size_t p = 0; p < priors.size(); ++p) {
      if (priors[p])
        problem.AddResidualBlock(new PriorCost(size, static_cast<int>(p), *priors[p]), nullptr,
                                 fit_.coefficients.data());
    }
    for (std::size_t k = 0; k < fit_.deviations.size(); ++k) {
      for (auto& [group, deviation] : fit_.deviations[k]) {
        ceres::LossFunction* loss = k < options_.heavy_tailed ? new ceres::CauchyLoss(1) : nullptr;
        problem.AddResidualBlock(new PriorCost(1, 0, {0, fit_.widths[k]}), loss, &deviation);
      }
    }
  }

  // Of the coefficients in the joint problem without the outliers, at fixed widths.
  void set_standard_errors() {
    ceres::Problem problem;
    for (const MixedRow& row : rows_) {
      if (is_outlier(row)) continue;
      std::vector<double*> blocks{fit_.coefficients.data()};
      for (std::size_t k = 0; k < row.groups.size(); ++k) {
        if (!row.groups[k].empty()) blocks.push_back(&fit_.deviations[k].at(row.groups[k]));
      }
      problem.AddResidualBlock(
          new RowCost(row, fit_.scale * row.noise, static_cast<int>(blocks.size()) - 1), nullptr,
          blocks);
    }
    add_priors(problem);
    const std::size_t size = fit_.coefficients.size();
    fit_.standard_errors.assign(size, 0);
    ceres::Covariance::Options options;
    options.algorithm_type = ceres::DENSE_SVD;
    options.null_space_rank = -1;
    ceres::Covariance covariance(options);
    const std::vector<std::pair<const double*, const double*>> wanted{
        {fit_.coefficients.data(), fit_.coefficients.data()}};
    std::vector<double> block(size * size);
    if (!covariance.Compute(wanted, &problem) ||
        !covariance.GetCovarianceBlock(fit_.coefficients.data(), fit_.coefficients.data(),
                                       block.data()))
      return;
    for (std::size_t c = 0; c < size; ++c) fit_.standard_errors[c] = std::sqrt(block[c * size + c]);
  }

  const std::vector<MixedRow>& rows_;
  const MixedOptions& options_;
  MixedFit fit_;
};

}  // namespace

double MixedFit::predict(const MixedRow& row) const {
  double predicted = 0;
  for (std::size_t t = 0; t < row.terms.size(); ++t) predicted += row.terms[t] * coefficients[t];
  for (std::size_t k = 0; k < row.groups.size(); ++k) {
    const auto found = deviations[k].find(row.groups[k]);
    if (found != deviations[k].end()) predicted += row.group_factor * found->second;
  }
  return predicted;
}

MixedFit fit_mixed_model(const std::vector<MixedRow>& rows, const MixedOptions& options) {
  check_shapes(rows, options.priors);
  return MixedSolver(rows, options).run();
}

}  // namespace memfathom

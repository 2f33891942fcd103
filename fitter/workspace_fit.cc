#include "fitter/workspace_fit.h"

#include <ceres/ceres.h>
#include <fmt/format.h>

#include <Eigen/Dense>
#include <algorithm>
#include <cmath>
#include <map>

#include "core/quantile.h"
#include "fitter/folds.h"
#include "fitter/held_parameters.h"
#include "fitter/noise.h"

namespace memfathom {
namespace {

// A workspace below it never decides anything; errors are relative above it.
constexpr double kFloor = 1 << 20;
constexpr double kHuberCutoff = 1.345;
constexpr double kMinScale = 1e-4;
constexpr std::size_t kMinRows = 2;         // a quick plan sees a transform in two sizes
constexpr std::size_t kMinRowsPerTerm = 2;  // of a model; one of them is to be held out
constexpr std::size_t kMaxFolds = 5;
constexpr int kMaxReweightingRounds = 8;
constexpr std::size_t kMaxRowsForSelection = 1000;  // rows; choosing terms needs no more
constexpr double kExact = 0.005;  // mean held-out error below which no further term is tried

using Row = const WorkspaceRow*;
using Phi = WorkspaceFeatures;
using Terms = std::vector<int>;

double unit_of_term(int term) { return term == kTermConstant ? kFloor : 1.0; }
double size_of(Row row) { return static_cast<double>(row->measured.count()); }

double predict(Row row, const Phi& phi) { return predict_workspace(row->features, phi.data()); }

// Relative to the larger of the two and so never beyond 1: a plan that asks for nothing where
// others want gigabytes is one wrong row, not a thousand.
double error_unit(Row row, double predicted) { return std::max(size_of(row), predicted) + kFloor; }
double relative_error(Row row, const Phi& phi) {
  const double predicted = predict(row, phi);
  return (predicted - size_of(row)) / error_unit(row, predicted);
}

double scale_of(const std::vector<Row>& rows, const Phi& phi) {
  std::vector<double> errors;
  for (const Row row : rows) errors.push_back(std::abs(relative_error(row, phi)));
  return std::max(1.4826 * median(std::move(errors)), kMinScale);
}

struct Residual {
  Row row;
  double sigma;  // bytes
  template <typename T>
  bool operator()(const T* x, T* residual) const {
    std::array<T, kWorkspaceTermCount> phi;
    for (int t = 0; t < kWorkspaceTermCount; ++t) {
      phi[static_cast<std::size_t>(t)] = x[t] * unit_of_term(t);
    }
    residual[0] = (predict_workspace(row->features, phi.data()) - size_of(row)) / sigma;
    return true;
  }
};

Phi minimise(const std::vector<Row>& rows, const std::vector<double>& sigmas, const Terms& terms,
             const Phi& start) {
  std::array<double, kWorkspaceTermCount> x{};
  for (int t = 0; t < kWorkspaceTermCount; ++t) {
    x[static_cast<std::size_t>(t)] = start[static_cast<std::size_t>(t)] / unit_of_term(t);
  }
  ceres::HuberLoss loss(kHuberCutoff);
  ceres::Problem::Options ownership;
  ownership.loss_function_ownership = ceres::DO_NOT_TAKE_OWNERSHIP;
  ceres::Problem problem(ownership);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    auto* cost = new ceres::AutoDiffCostFunction<Residual, 1, kWorkspaceTermCount>(
        new Residual{rows[i], sigmas[i]});
    problem.AddResidualBlock(cost, &loss, x.data());
  }
  std::vector<int> held;
  for (int t = 0; t < kWorkspaceTermCount; ++t) {
    if (std::find(terms.begin(), terms.end(), t) == terms.end()) {
      held.push_back(t);
    } else {
      problem.SetParameterLowerBound(x.data(), t, 0.0);
    }
  }
  hold_parameters(problem, x.data(), kWorkspaceTermCount, held);
  ceres::Solver::Options options;
  options.linear_solver_type = ceres::DENSE_QR;
  options.logging_type = ceres::SILENT;
  options.function_tolerance = 1e-10;
  ceres::Solver::Summary summary;
  ceres::Solve(options, &problem, &summary);
  Phi phi{};
  for (int t = 0; t < kWorkspaceTermCount; ++t) {
    phi[static_cast<std::size_t>(t)] = x[static_cast<std::size_t>(t)] * unit_of_term(t);
  }
  return phi;
}

// Each round is convex. The first measures errors by the sizes of the call, the others by what the
// round before predicts.
Phi fit_terms(const std::vector<Row>& rows, const Terms& terms) {
  std::vector<double> sigmas(rows.size());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    double sizes = 0;
    for (const int term : terms) {
      if (term != kTermConstant) sizes += rows[i]->features[static_cast<std::size_t>(term)];
    }
    sigmas[i] = size_of(rows[i]) + sizes + kFloor;
  }
  Phi phi = minimise(rows, sigmas, terms, {});
  for (int round = 1; round < kMaxReweightingRounds; ++round) {
    const double scale = scale_of(rows, phi);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      sigmas[i] = scale * error_unit(rows[i], predict(rows[i], phi));
    }
    const Phi before = phi;
    phi = minimise(rows, sigmas, terms, phi);
    const bool settled = std::equal(phi.begin(), phi.end(), before.begin(), [](double a, double b) {
      return std::abs(a - b) <= 1e-4 * std::max(a, b);
    });
    if (settled) break;
  }
  return phi;
}

bool determined(const std::vector<Row>& rows, const Terms& terms) {
  Eigen::MatrixXd design(static_cast<Eigen::Index>(rows.size()),
                         static_cast<Eigen::Index>(terms.size()));
  for (std::size_t i = 0; i < rows.size(); ++i) {
    for (std::size_t j = 0; j < terms.size(); ++j) {
      design(static_cast<Eigen::Index>(i), static_cast<Eigen::Index>(j)) =
          rows[i]->features[static_cast<std::size_t>(terms[j])] / (size_of(rows[i]) + kFloor);
    }
  }
  for (Eigen::Index j = 0; j < design.cols(); ++j) {
    const double norm = design.col(j).norm();
    if (!(norm > 0)) return false;
    design.col(j) /= norm;
  }
  // Of the triangular factor, which has the same. Eigen 3.4 makes that step itself, but destroys
  // its factor twice where memory fails meanwhile; of a square matrix it needs none.
  const Eigen::Index k = design.cols();
  const Eigen::MatrixXd triangle =
      design.colPivHouseholderQr().matrixQR().topRows(k).triangularView<Eigen::Upper>();
  const Eigen::VectorXd singular = triangle.jacobiSvd().singularValues();
  return singular.minCoeff() > 1e-3 * singular.maxCoeff();
}

std::vector<double> held_out_errors(const std::vector<Row>& rows, const Terms& terms,
                                    std::uint64_t seed) {
  const auto folds = static_cast<int>(std::min(kMaxFolds, rows.size()));
  const std::vector<int> fold = random_folds(rows.size(), folds, seed);
  std::vector<double> errors(rows.size());
  for (int k = 0; k < folds; ++k) {
    std::vector<Row> training;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      if (fold[i] != k) training.push_back(rows[i]);
    }
    const Phi phi = fit_terms(training, terms);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      if (fold[i] == k) errors[i] = std::abs(relative_error(rows[i], phi));
    }
  }
  return errors;
}

double mean(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return values.empty() ? 0 : sum / static_cast<double>(values.size());
}

// Whether `tried` is lower than `best` by more than the standard error of their difference.
bool clearly_lower(const std::vector<double>& tried, const std::vector<double>& best, double gain) {
  double sum = 0;
  double squares = 0;
  for (std::size_t i = 0; i < tried.size(); ++i) {
    sum += best[i] - tried[i];
    squares += (best[i] - tried[i]) * (best[i] - tried[i]);
  }
  const auto n = static_cast<double>(tried.size());
  const double average = sum / n;
  const double error = std::sqrt(std::max(squares / n - average * average, 0.0) / n);
  return average > gain * error && average > 1e-6;
}

std::vector<double> standard_errors(const std::vector<Row>& rows, const Terms& terms,
                                    const Phi& phi) {
  const auto k = static_cast<Eigen::Index>(terms.size());
  Eigen::MatrixXd information = Eigen::MatrixXd::Zero(k, k);
  Eigen::MatrixXd scores = Eigen::MatrixXd::Zero(k, k);
  const double scale = scale_of(rows, phi);
  Eigen::VectorXd g(k);
  for (const Row row : rows) {
    for (Eigen::Index j = 0; j < k; ++j) {
      g[j] = row->features[static_cast<std::size_t>(terms[static_cast<std::size_t>(j)])] /
             (error_unit(row, predict(row, phi)) * scale);
    }
    const double z = relative_error(row, phi) / scale;
    const double psi = std::clamp(z, -kHuberCutoff, kHuberCutoff);
    if (std::abs(z) <= kHuberCutoff) information.noalias() += g * g.transpose();
    scores.noalias() += psi * psi * g * g.transpose();
  }
  const Eigen::MatrixXd bread = information.completeOrthogonalDecomposition().pseudoInverse();
  const Eigen::MatrixXd covariance = bread * scores * bread;
  std::vector<double> errors;
  for (Eigen::Index j = 0; j < k; ++j) errors.push_back(std::sqrt(std::max(covariance(j, j), 0.0)));
  return errors;
}

std::string problem_with(const std::vector<Row>& rows) {
  if (rows.size() < kMinRows) {
    return fmt::format("{} recorded request{} too few; at least {} are needed", rows.size(),
                       rows.size() == 1 ? " is" : "s are", kMinRows);
  }
  for (const Row row : rows) {
    if (row->measured.count() < 0)
      return fmt::format("a request of {} bytes cannot be", row->measured.count());
    for (const double feature : row->features) {
      if (!std::isfinite(feature) || feature < 0 || feature > 1e18)
        return fmt::format("a size of {} bytes cannot be", feature);
    }
  }
  return "";
}

// From the fewest terms to the most; the first two are the everyday answers of cuDNN and cuFFT.
const std::vector<Terms>& candidates() {
  static const std::vector<Terms> kCandidates{
      {kTermConstant},
      {kTermInput},
      {kTermOutput},
      {kTermWeights},
      {kTermLowered},
      {kTermInput, kTermOutput},
      {kTermConstant, kTermWeights},
      {kTermConstant, kTermInput, kTermOutput},
      {kTermInput, kTermOutput, kTermWeights},
      {kTermConstant, kTermInput, kTermOutput, kTermWeights, kTermLowered},
  };
  return kCandidates;
}

void fit_operation(const std::vector<Row>& rows, const FitOptions& options,
                   WorkspaceModelFit* model, WorkspaceFit* result) {
  model->refusal = problem_with(rows);
  if (!model->refusal.empty()) return;
  std::vector<Row> sample;
  const std::size_t stride = (rows.size() + kMaxRowsForSelection - 1) / kMaxRowsForSelection;
  for (std::size_t i = 0; i < rows.size(); i += stride) sample.push_back(rows[i]);
  Terms chosen;
  std::vector<double> best;
  for (const Terms& terms : candidates()) {
    if (!best.empty() && mean(best) < kExact) break;
    if (terms.size() * kMinRowsPerTerm > sample.size() || !determined(sample, terms)) continue;
    std::vector<double> errors = held_out_errors(sample, terms, options.seed);
    if (!chosen.empty() && !clearly_lower(errors, best, options.selection_gain)) continue;
    chosen = terms;
    best = std::move(errors);
  }
  if (chosen.empty()) {
    model->refusal =
        "the sizes of its calls are all 0 or do not vary apart; no term can be told from another";
    return;
  }
  const Phi phi = fit_terms(rows, chosen);
  const std::vector<double> errors = standard_errors(rows, chosen, phi);
  for (std::size_t j = 0; j < chosen.size(); ++j) {
    const auto term = static_cast<WorkspaceTerm>(chosen[j]);
    if (j > 0) model->terms += " + ";
    model->terms += to_string(term);
    result->coefficients.push_back({phi_name(model->library, model->operation, term),
                                    phi[static_cast<std::size_t>(term)], errors[j],
                                    term == kTermConstant ? "bytes" : "1", Source::kFitted, false,
                                    static_cast<int>(rows.size())});
  }
  const auto close =
      std::count_if(best.begin(), best.end(), [](double error) { return error <= 0.1; });
  model->within_10_percent = static_cast<double>(close) / static_cast<double>(best.size());
  model->held_out_median_error = median(best);
}

}  // namespace

WorkspaceFit fit_workspaces(const std::vector<WorkspaceRow>& rows, const FitOptions& options) {
  std::map<std::pair<Library, std::string>, std::vector<Row>> by_operation;
  for (const WorkspaceRow& row : rows) by_operation[{row.library, row.operation}].push_back(&row);
  WorkspaceFit result;
  for (const auto& [key, group] : by_operation) {
    WorkspaceModelFit model{key.first, key.second, static_cast<int>(group.size()), {}, 0, 0, {}};
    fit_operation(group, options, &model, &result);
    result.models.push_back(std::move(model));
  }
  return result;
}

}  // namespace memfathom

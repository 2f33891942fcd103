#include "fitter/solver.h"

#include <ceres/ceres.h>
#include <ceres/jet.h>

#include <Eigen/Dense>
#include <algorithm>
#include <cmath>
#include <map>

#include "fitter/held_parameters.h"
#include "fitter/residual.h"

namespace memfathom {
namespace {

constexpr double kHuberCutoff = 1.345;
constexpr std::size_t kMinRowsForTukey = 12;
constexpr int kNoiseRounds = 2;
constexpr double kMinSlope = 0.05;  // keeps the covariance finite when nearly all rows are outliers

double size_of_row(const FitRow& row) {
  return static_cast<double>((row.is_censored() ? row.capacity : *row.measured).count());
}

double sigma_of(const FitRow& row, const Noise& noise) {
  return noise.sigma(size_of_row(row), row.noise_class());
}

bool any_diagnostic(const PerParameter<bool>& free) {
  return std::any_of(free.begin() + kTheta, free.end(), [](bool is_free) { return is_free; });
}

enum class Loss { kHuber, kTukey };

struct Step {
  bool converged = false;
  std::string message;
  int iterations = 0;
};

// One Ceres solve; `x` holds solver units.
template <int N>
Step minimise(const RowList& rows, const SolverSetup& setup, const Noise& noise, Loss loss,
              PerParameter<double>* x) {
  ceres::HuberLoss huber(kHuberCutoff);
  ceres::TukeyLoss tukey(kTukeyCutoff);
  ceres::LossFunction* robust =
      loss == Loss::kHuber ? static_cast<ceres::LossFunction*>(&huber) : &tukey;

  ceres::Problem::Options ownership;
  ownership.loss_function_ownership = ceres::DO_NOT_TAKE_OWNERSHIP;
  ceres::Problem problem(ownership);
  for (const FitRow* row : rows) {
    auto* cost = new ceres::AutoDiffCostFunction<RowResidual<N>, 1, N>(
        new RowResidual<N>{row, sigma_of(*row, noise)});
    problem.AddResidualBlock(cost, robust, x->data());
  }
  std::vector<int> held;
  for (int i = 0; i < N; ++i) {
    const auto at = static_cast<std::size_t>(i);
    if (!setup.free[at]) {
      held.push_back(i);
      continue;
    }
    problem.SetParameterLowerBound(x->data(), i, 0.0);
    if (std::isfinite(setup.priors[at].sigma)) {
      auto* cost = new ceres::AutoDiffCostFunction<PriorResidual<N>, 1, N>(new PriorResidual<N>{
          i, setup.priors[at].mean / unit_of(i), setup.priors[at].sigma / unit_of(i)});
      problem.AddResidualBlock(cost, nullptr, x->data());
    }
  }
  hold_parameters(problem, x->data(), N, held);

  ceres::Solver::Options options;
  options.linear_solver_type = ceres::DENSE_NORMAL_CHOLESKY;
  options.max_num_iterations = 200;
  options.function_tolerance = 1e-10;
  options.parameter_tolerance = 1e-10;
  options.logging_type = ceres::SILENT;
  ceres::Solver::Summary summary;
  ceres::Solve(options, &problem, &summary);
  return {summary.termination_type == ceres::CONVERGENCE, summary.message,
          static_cast<int>(summary.iterations.size())};
}

Step minimise(const RowList& rows, const SolverSetup& setup, const Noise& noise, Loss loss,
              PerParameter<double>* x) {
  return any_diagnostic(setup.free) ? minimise<kParameterCount>(rows, setup, noise, loss, x)
                                    : minimise<kSolvedConstants>(rows, setup, noise, loss, x);
}

Noise noise_at(const RowList& rows, const PerParameter<double>& x, const SolverSetup& setup) {
  std::vector<NoiseReading> readings;
  for (const FitRow* row : rows) {
    if (row->is_censored()) continue;
    const double size = size_of_row(*row);
    readings.push_back(
        {size, predict_row(*row, x.data(), kParameterCount) - size, row->noise_class()});
  }
  Noise noise = estimate_noise(readings, setup.quantum);
  if (setup.common_noise) noise.by_class.fill(noise.all);
  return noise;
}

using Jet = ceres::Jet<double, kParameterCount>;

Jet residual_with_gradient(const FitRow& row, const Noise& noise, const PerParameter<double>& x) {
  std::array<Jet, kParameterCount> jets;
  for (int i = 0; i < kParameterCount; ++i)
    jets[static_cast<std::size_t>(i)] = Jet(x[static_cast<std::size_t>(i)], i);
  Jet residual;
  RowResidual<kParameterCount>{&row, sigma_of(row, noise)}(jets.data(), &residual);
  return residual;
}

// The derivative of the loss and its slope, at a residual z.
struct Influence {
  double psi;
  double slope;
};
Influence influence_at(double z, Loss loss) {
  if (loss == Loss::kHuber) {
    return std::abs(z) <= kHuberCutoff ? Influence{z, 1}
                                       : Influence{std::copysign(kHuberCutoff, z), 0};
  }
  const double u = z / kTukeyCutoff;
  if (std::abs(u) >= 1) return {0, 0};
  const double w = 1 - u * u;
  return {z * w * w, w * (1 - 5 * u * u)};
}

PerParameter<double> in_solver_units(PerParameter<double> bytes) {
  for (int i = 0; i < kParameterCount; ++i) bytes[static_cast<std::size_t>(i)] /= unit_of(i);
  return bytes;
}

struct Normal {
  std::vector<int> active;
  Eigen::MatrixXd information;  // of the data, robustly weighted
  Eigen::MatrixXd scores;       // spread of the data's scores
  Eigen::MatrixXd prior;
};

Normal normal_equations(const RowList& rows, const SolverSetup& setup, const Solution& solution,
                        Loss loss) {
  Normal normal;
  for (int i = 0; i < kParameterCount; ++i) {
    if (setup.free[static_cast<std::size_t>(i)]) normal.active.push_back(i);
  }
  const auto k = static_cast<Eigen::Index>(normal.active.size());
  normal.information = Eigen::MatrixXd::Zero(k, k);
  normal.scores = Eigen::MatrixXd::Zero(k, k);
  normal.prior = Eigen::MatrixXd::Zero(k, k);
  const PerParameter<double> x = in_solver_units(solution.value);
  std::map<std::pair<std::string, int>, Eigen::VectorXd> shared;
  struct OfClass {
    Eigen::MatrixXd information;
    Eigen::MatrixXd scores;
    double slopes = 0;
    double rows = 0;
  };
  std::map<int, OfClass> classes;
  Eigen::VectorXd g(k);
  for (const FitRow* row : rows) {
    const Jet residual = residual_with_gradient(*row, solution.noise, x);
    for (Eigen::Index i = 0; i < k; ++i) {
      g[i] = residual.v[normal.active[static_cast<std::size_t>(i)]];
    }
    // Huber's score also where Tukey's loss lets a row go: rows that disagree must widen the
    // errors.
    const double score = influence_at(residual.a, Loss::kHuber).psi;
    OfClass& own =
        classes.try_emplace(row->noise_class(), OfClass{normal.prior, normal.prior}).first->second;
    own.information.noalias() += g * g.transpose();
    own.scores.noalias() += score * score * g * g.transpose();
    own.slopes += influence_at(residual.a, loss).slope;
    own.rows += 1;
    shared.try_emplace({row->family, row->library_pattern()}, Eigen::VectorXd::Zero(k))
        .first->second += score * g;
  }
  // Rows with heavy tails hold an estimate less firmly (a smaller mean slope); few rows seem to
  // agree better than they do.
  for (const auto& [noise_class, own] : classes) {
    normal.information += std::max(own.slopes / own.rows, kMinSlope) * own.information;
    normal.scores += own.scores * (own.rows / std::max(own.rows - 1, 1.0));
  }
  // What a family has in common (it loads less of a module, its workspaces are off) does not
  // average out over its rows.
  for (const auto& [cluster, sum] : shared) normal.scores.noalias() += sum * sum.transpose();
  for (Eigen::Index i = 0; i < k; ++i) {
    const int parameter = normal.active[static_cast<std::size_t>(i)];
    const double sigma =
        setup.priors[static_cast<std::size_t>(parameter)].sigma / unit_of(parameter);
    if (std::isfinite(sigma)) normal.prior(i, i) = 1 / (sigma * sigma);
  }
  return normal;
}

Loss final_loss(const RowList& rows) {
  return rows.size() >= kMinRowsForTukey ? Loss::kTukey : Loss::kHuber;
}

// Where the covariance of two parameters stands.
std::size_t covariance_entry(int p, int q) {
  return static_cast<std::size_t>(p) * kParameterCount + static_cast<std::size_t>(q);
}

void add_uncertainty(const RowList& rows, const SolverSetup& setup, Solution* solution) {
  const Normal normal = normal_equations(rows, setup, *solution, final_loss(rows));
  const Eigen::MatrixXd bread =
      (normal.information + normal.prior).completeOrthogonalDecomposition().pseudoInverse();
  const Eigen::MatrixXd covariance = bread * (normal.scores + normal.prior) * bread;
  const Eigen::MatrixXd pull = bread * normal.prior;
  solution->covariance.assign(covariance_entry(kParameterCount, 0), 0.0);
  for (std::size_t i = 0; i < normal.active.size(); ++i) {
    const int p = normal.active[i];
    const auto ei = static_cast<Eigen::Index>(i);
    solution->pull[static_cast<std::size_t>(p)] = std::clamp(pull(ei, ei), 0.0, 1.0);
    for (std::size_t j = 0; j < normal.active.size(); ++j) {
      const int q = normal.active[j];
      solution->covariance[covariance_entry(p, q)] =
          covariance(ei, static_cast<Eigen::Index>(j)) * unit_of(p) * unit_of(q);
    }
  }
}

void count_bearing(const RowList& rows, Solution* solution) {
  const PerParameter<double> x = in_solver_units(solution->value);
  for (const FitRow* row : rows) {
    const Jet residual = residual_with_gradient(*row, solution->noise, x);
    for (int i = 0; i < kParameterCount; ++i) {
      if (residual.v[i] != 0) ++solution->rows_bearing[static_cast<std::size_t>(i)];
    }
  }
}

}  // namespace

double Solution::covariance_of(int p, int q) const {
  return covariance.empty() ? 0 : covariance[covariance_entry(p, q)];
}

double Solution::predict(const FitRow& row) const {
  const PerParameter<double> x = in_solver_units(value);
  return predict_row(row, x.data(), kParameterCount);
}

Solution solve(const RowList& rows, const SolverSetup& setup) {
  Solution solution;
  PerParameter<double> x = in_solver_units(setup.start);
  solution.noise = setup.noise != nullptr ? *setup.noise : noise_at(rows, x, setup);
  Step step;
  for (int round = 0; round < (setup.noise != nullptr ? 1 : kNoiseRounds); ++round) {
    step = minimise(rows, setup, solution.noise, Loss::kHuber, &x);
    solution.iterations += step.iterations;
    if (setup.noise == nullptr) solution.noise = noise_at(rows, x, setup);
  }
  if (final_loss(rows) == Loss::kTukey) {
    step = minimise(rows, setup, solution.noise, Loss::kTukey, &x);
    solution.iterations += step.iterations;
  }
  solution.converged = step.converged;
  solution.message = step.message;
  for (int i = 0; i < kParameterCount; ++i) {
    solution.value[static_cast<std::size_t>(i)] = x[static_cast<std::size_t>(i)] * unit_of(i);
  }
  if (setup.with_uncertainty) {
    add_uncertainty(rows, setup, &solution);
    count_bearing(rows, &solution);
  }
  return solution;
}

double unexplained(const RowList& rows, const Solution& solution) {
  const PerParameter<double> x = in_solver_units(solution.value);
  double sum = 0;
  for (const FitRow* row : rows) {
    double z = 0;
    RowResidual<kParameterCount>{row, sigma_of(*row, solution.noise)}(x.data(), &z);
    const double inside = 1 - std::min(1.0, z * z / (kTukeyCutoff * kTukeyCutoff));
    sum += kTukeyCutoff * kTukeyCutoff / 6 * (1 - inside * inside * inside);
  }
  return sum;
}

std::vector<RowInfluence> influences(const RowList& rows, const SolverSetup& setup,
                                     const Solution& solution) {
  const Normal normal = normal_equations(rows, setup, solution, Loss::kHuber);
  const Eigen::MatrixXd inverse =
      (normal.information + normal.prior).completeOrthogonalDecomposition().pseudoInverse();
  const PerParameter<double> x = in_solver_units(solution.value);
  std::vector<RowInfluence> result;
  result.reserve(rows.size());
  Eigen::VectorXd g(static_cast<Eigen::Index>(normal.active.size()));
  for (const FitRow* row : rows) {
    const Jet residual = residual_with_gradient(*row, solution.noise, x);
    for (std::size_t i = 0; i < normal.active.size(); ++i)
      g[static_cast<Eigen::Index>(i)] = residual.v[normal.active[i]];
    result.push_back({residual.a, std::clamp(g.dot(inverse * g), 0.0, 1.0)});
  }
  return result;
}

}  // namespace memfathom

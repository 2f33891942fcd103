#include "fitter/diagnosis.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/coefficients.h"
#include "core/quantile.h"

namespace memfathom {
namespace {

constexpr double kFactorPrior = 0.25;        // of the joint fit: data must insist to move a factor
constexpr double kSinglePrior = 1.0;         // of a factor tried alone
constexpr double kPerLayerPrior = 64 << 20;  // bytes
constexpr double kAlarm = 4;                 // standard errors; eight terms are tried on every fit
constexpr double kMaterial = 0.01;           // of the measured bytes; less is not worth a sentence

std::string name_of(int parameter) {
  if (parameter == kThetaReplay) return "theta.replay";
  if (parameter == kPerLayer) return "theta.per_layer";
  return theta_name(static_cast<ThetaIndex>(parameter - kTheta));
}

std::string group_words(int parameter) {
  if (parameter == kThetaReplay) return "the whole replay";
  switch (static_cast<ThetaIndex>(parameter - kTheta)) {
    case kStates: return "parameters, gradients and optimizer state";
    case kActivations: return "saved activations";
    case kTemporaries: return "temporaries";
    case kLogits: return "logits and loss";
    case kWorkspaces: return "library workspaces";
    case kSlack: return "the allocator's slack";
    case kThetaCount: break;
  }
  return "";
}

double size_in(const FitRow& row, int parameter) {
  const ReplayedJob& job = row.replay;
  if (parameter == kThetaReplay) return static_cast<double>(job.reserved_peak.count());
  if (parameter == kPerLayer) return static_cast<double>(job.layers);
  const std::array<Bytes, kThetaCount> groups{job.states, job.activations, job.temporaries,
                                              job.logits, job.workspaces,  job.slack()};
  return static_cast<double>(groups[static_cast<std::size_t>(parameter - kTheta)].count());
}

// What the term amounts to in the row where it matters most among the ordinary ones, as a share of
// the measured bytes.
double effect_of(const RowList& rows, int parameter, double excess) {
  std::vector<double> shares;
  for (const FitRow* row : rows) {
    if (!row->is_censored()) {
      shares.push_back(std::abs(excess) * size_in(*row, parameter) /
                       static_cast<double>(row->measured->count()));
    }
  }
  if (shares.empty()) return 0;
  const auto upper = shares.begin() + static_cast<std::ptrdiff_t>((shares.size() - 1) * 9 / 10);
  std::nth_element(shares.begin(), upper, shares.end());
  return *upper;
}

// Rows that can speak of a term: a job whose layers nobody counted says nothing of bytes per layer.
RowList speaking_of(const RowList& rows, int parameter) {
  RowList speaking;
  for (const FitRow* row : rows) {
    if (parameter != kPerLayer || row->replay.layers > 0) speaking.push_back(row);
  }
  return speaking;
}

bool varies(const RowList& rows, int parameter) {
  if (rows.empty()) return false;
  const double first = size_in(*rows.front(), parameter);
  return std::any_of(rows.begin(), rows.end(),
                     [&](const FitRow* row) { return size_in(*row, parameter) != first; });
}

std::string sentence_for(const MissingTerm& term, int parameter) {
  if (parameter == kPerLayer) {
    return fmt::format("a term is missing: the residuals grow by {:.2f} +- {:.2f} MiB per layer",
                       term.value / (1 << 20), term.standard_error / (1 << 20));
  }
  return fmt::format(
      "a term is missing: the residuals ask for {:.3f} +- {:.3f} times {} where the replay says 1",
      term.value, term.standard_error, group_words(parameter));
}

std::vector<ReplayCheck> check_replay(const RowList& rows) {
  std::vector<ReplayCheck> checks;
  for (const Metric metric : {Metric::kAllocated, Metric::kReserved}) {
    std::vector<double> ratios;
    std::vector<double> errors;
    for (const FitRow* row : rows) {
      if (row->metric != metric || row->is_censored()) continue;
      const Bytes replayed =
          metric == Metric::kAllocated ? row->replay.allocated_peak : row->replay.reserved_peak;
      if (replayed.count() <= 0) continue;
      ratios.push_back(static_cast<double>(row->measured->count()) /
                       static_cast<double>(replayed.count()));
      errors.push_back(std::abs(1 / ratios.back() - 1));
    }
    if (ratios.empty()) continue;
    std::sort(errors.begin(), errors.end());
    checks.push_back({metric, static_cast<int>(ratios.size()), median(ratios),
                      errors[(errors.size() - 1) * 9 / 10]});
  }
  return checks;
}

}  // namespace

Diagnosis diagnose(const RowList& rows, const RowList& device, const SolverSetup& setup,
                   const Solution& constants, const FitOptions& options) {
  Diagnosis diagnosis;
  diagnosis.checks = check_replay(rows);
  RowList sample;
  const std::size_t stride =
      std::max<std::size_t>(1, rows.size() / static_cast<std::size_t>(options.fold_rows));
  for (std::size_t i = 0; i < rows.size(); i += stride) sample.push_back(rows[i]);

  SolverSetup base = setup;
  base.start = constants.value;
  base.noise = &constants.noise;
  for (int p = kTheta; p < kParameterCount; ++p)
    base.start[static_cast<std::size_t>(p)] = neutral(p);

  SolverSetup joint = base;
  for (int p = kTheta; p < kThetaReplay; ++p) {
    joint.free[static_cast<std::size_t>(p)] = true;
    joint.priors[static_cast<std::size_t>(p)] = {1, kFactorPrior};
  }
  diagnosis.factors = solve(sample, joint);
  diagnosis.pull = diagnosis.factors.pull;

  for (int p = kTheta; p < kParameterCount; ++p) {
    const RowList speaking = speaking_of(sample, p);
    if (!varies(speaking, p)) continue;
    SolverSetup alone = base;
    alone.free[static_cast<std::size_t>(p)] = true;
    alone.priors[static_cast<std::size_t>(p)] = {neutral(p),
                                                 p == kPerLayer ? kPerLayerPrior : kSinglePrior};
    const Solution solution = solve(speaking, alone);
    const double error = std::sqrt(solution.variance(p));
    const double excess = solution.value[static_cast<std::size_t>(p)] - neutral(p);
    const double z = error > 0 ? excess / error : 0;
    if (std::abs(z) < kAlarm || effect_of(device, p, excess) < kMaterial) continue;
    const double before = unexplained(speaking, constants);
    const double after = unexplained(speaking, solution);
    MissingTerm term{name_of(p), excess + neutral(p), error, z,
                     before > 0 ? 1 - after / before : 0};
    term.sentence = sentence_for(term, p);
    for (std::size_t c = 0; c < static_cast<std::size_t>(kSolvedConstants); ++c) {
      term.shifts[c] = solution.value[c] - constants.value[c];
    }
    diagnosis.missing.push_back(std::move(term));
  }
  std::sort(diagnosis.missing.begin(), diagnosis.missing.end(),
            [](const MissingTerm& a, const MissingTerm& b) { return a.explains > b.explains; });
  return diagnosis;
}

}  // namespace memfathom

#include "fitter/selection.h"

#include <algorithm>
#include <cmath>

namespace memfathom {
namespace {

constexpr int kSelectionFolds = 5;

std::string model_name(const PerParameter<bool>& free) {
  std::string name = "constant";
  for (int p = kFirstModule; p < kSolvedConstants; ++p) {
    if (free[static_cast<std::size_t>(p)]) name.append(" + ").append(module_of(p).name);
  }
  return name;
}

std::vector<double> held_out_losses(const RowList& rows, SolverSetup setup,
                                    const PerParameter<bool>& identifiable,
                                    const PerParameter<bool>& free, const FitOptions& options) {
  for (std::size_t p = 0; p < static_cast<std::size_t>(kSolvedConstants); ++p) {
    if (identifiable[p] && !free[p]) setup.start[p] = 0;
  }
  setup.free = free;
  const std::vector<double> predicted = held_out_predictions(
      rows, random_folds(rows.size(), kSelectionFolds, options.seed), setup, options);
  std::vector<double> losses;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (rows[i]->is_censored()) continue;
    const auto measured = static_cast<double>(rows[i]->measured->count());
    losses.push_back(std::min(
        std::abs(predicted[i] - measured) / setup.noise->sigma(measured, rows[i]->noise_class()),
        kTukeyCutoff));
  }
  return losses;
}

double mean(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return values.empty() ? 0 : sum / static_cast<double>(values.size());
}

// How many standard errors the mean of before - after lies above 0, row by row.
double gain_of(const std::vector<double>& before, const std::vector<double>& after) {
  std::vector<double> difference(before.size());
  for (std::size_t i = 0; i < before.size(); ++i) difference[i] = before[i] - after[i];
  const double average = mean(difference);
  double squares = 0;
  for (const double d : difference) squares += (d - average) * (d - average);
  const auto n = static_cast<double>(difference.size());
  const double error = n < 2 ? 0 : std::sqrt(squares / (n - 1) / n);
  return error > 0 ? average / error : 0;
}

}  // namespace

Selection select_modules(const RowList& rows, const SolverSetup& setup, const FitOptions& options) {
  Selection selection;
  selection.free = setup.free;
  for (int p = kFirstModule; p < kSolvedConstants; ++p)
    selection.free[static_cast<std::size_t>(p)] = false;
  std::vector<double> losses = held_out_losses(rows, setup, setup.free, selection.free, options);
  selection.steps.push_back({model_name(selection.free), mean(losses), 0, true});
  while (true) {
    PerParameter<bool> best_free = selection.free;
    std::vector<double> best = losses;
    std::size_t best_step = 0;
    for (int p = kFirstModule; p < kSolvedConstants; ++p) {
      const auto at = static_cast<std::size_t>(p);
      if (!setup.free[at] || selection.free[at]) continue;
      PerParameter<bool> candidate = selection.free;
      candidate[at] = true;
      const std::vector<double> tried =
          held_out_losses(rows, setup, setup.free, candidate, options);
      selection.steps.push_back(
          {model_name(candidate), mean(tried), gain_of(losses, tried), false});
      if (selection.steps.back().gain > options.selection_gain && mean(tried) < mean(best)) {
        best = tried;
        best_free = candidate;
        best_step = selection.steps.size() - 1;
      }
    }
    if (best_step == 0) return selection;
    selection.steps[best_step].kept = true;
    selection.free = best_free;
    losses = best;
  }
}

}  // namespace memfathom

#include "fitter/folds.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <numeric>
#include <random>

namespace memfathom {
namespace {

// Written out because std::shuffle's order differs between standard libraries.
template <typename T>
void shuffle(std::vector<T>* values, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  for (std::size_t i = values->size(); i > 1; --i)
    std::swap((*values)[i - 1], (*values)[random() % i]);
}

constexpr int kPatterns = 1 << kModuleCount;  // of FitRow::library_pattern()

// A column of the design over the patterns, each pattern weighted by the root of its rows.
using Column = std::array<double, kPatterns>;

double dot(const Column& a, const Column& b) {
  return std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
}

struct Direction {
  int parameter;
  Column unit;
};

// The constants in turn, each as far as those before do not explain it. `confounded` gets the pairs
// of modules of which the second has no rows beside those of the first. Two constants of one
// library are no such pair: they come together by definition, and the second is held at its prior.
std::vector<Direction> independent_columns(const RowList& rows, int min_rows_per_module,
                                           std::vector<std::pair<int, int>>* confounded) {
  Column count{};
  for (const FitRow* row : rows) {
    if (!row->is_censored() && row->weight > 0)
      count[static_cast<std::size_t>(row->library_pattern())] += 1;
  }
  std::vector<Direction> basis;
  for (int parameter = kBase; parameter < kSolvedConstants; ++parameter) {
    Column column{};
    for (int pattern = 0; pattern < kPatterns; ++pattern) {
      const bool present = parameter == kBase || (pattern >> (parameter - kFirstModule) & 1) != 0;
      column[static_cast<std::size_t>(pattern)] =
          present ? std::sqrt(count[static_cast<std::size_t>(pattern)]) : 0;
    }
    int last_used = kBase;  // it truly takes part; those before may come in through it
    const double needed = parameter == kBase ? 1 : 0.5 * min_rows_per_module;
    for (const Direction& direction : basis) {
      const double along = dot(column, direction.unit);
      for (std::size_t i = 0; i < column.size(); ++i) column[i] -= along * direction.unit[i];
      if (along * along >= needed) last_used = direction.parameter;
    }
    // What is left, squared, is the number of rows that speak for this term alone.
    const double rows_left = dot(column, column);
    if (rows_left < needed) {
      if (confounded != nullptr && last_used != kBase &&
          module_of(last_used).condition != module_of(parameter).condition)
        confounded->emplace_back(last_used, parameter);
      continue;
    }
    for (double& value : column) value /= std::sqrt(rows_left);
    basis.push_back({parameter, column});
  }
  return basis;
}

}  // namespace

std::vector<int> random_folds(std::size_t rows, int folds, std::uint64_t seed) {
  std::vector<int> fold(rows);
  for (std::size_t i = 0; i < rows; ++i)
    fold[i] = static_cast<int>(i % static_cast<std::size_t>(folds));
  shuffle(&fold, seed);
  return fold;
}

FamilyFolds family_folds(const RowList& rows, int max_folds) {
  FamilyFolds result;
  std::map<std::string, int> known;
  for (const FitRow* row : rows) {
    const auto [at, is_new] =
        known.emplace(row->family, static_cast<int>(known.size()) % max_folds);
    result.fold.push_back(at->second);
  }
  result.families = static_cast<int>(known.size());
  return result;
}

PerParameter<bool> identifiable_constants(const RowList& rows, int min_rows_per_module) {
  PerParameter<bool> result{};
  for (const Direction& direction : independent_columns(rows, min_rows_per_module, nullptr))
    result[static_cast<std::size_t>(direction.parameter)] = true;
  return result;
}

std::vector<std::pair<int, int>> confounded_modules(const RowList& rows, int min_rows_per_module) {
  std::vector<std::pair<int, int>> pairs;
  independent_columns(rows, min_rows_per_module, &pairs);
  return pairs;
}

std::vector<double> held_out_predictions(const RowList& rows, const std::vector<int>& fold,
                                         const SolverSetup& setup, const FitOptions& options) {
  std::vector<double> predicted(rows.size(), 0.0);
  const int folds = fold.empty() ? 0 : *std::max_element(fold.begin(), fold.end()) + 1;
  for (int k = 0; k < folds; ++k) {
    RowList training;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      if (fold[i] != k || rows[i]->is_censored()) training.push_back(rows[i]);
    }
    if (training.size() > static_cast<std::size_t>(options.fold_rows)) {
      shuffle(&training, options.seed + static_cast<std::uint64_t>(k));
      training.resize(static_cast<std::size_t>(options.fold_rows));
    }
    SolverSetup without = setup;
    without.with_uncertainty = false;
    const PerParameter<bool> determined =
        identifiable_constants(training, options.min_rows_per_module);
    for (std::size_t p = 0; p < static_cast<std::size_t>(kSolvedConstants); ++p) {
      if (!setup.free[p] || determined[p]) continue;
      without.free[p] = false;
      without.start[p] = setup.priors[p].mean;
    }
    const Solution solution = solve(training, without);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      if (fold[i] == k && !rows[i]->is_censored()) predicted[i] = solution.predict(*rows[i]);
    }
  }
  return predicted;
}

}  // namespace memfathom

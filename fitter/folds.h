// Folds: rows set aside in turn, fitted without, and predicted.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "fitter/options.h"
#include "fitter/solver.h"

namespace memfathom {

// The fold of each row, 0..folds-1, as even as can be and in an order that only the seed decides.
std::vector<int> random_folds(std::size_t rows, int folds, std::uint64_t seed);

// Whole families share a fold, so that each is predicted by fits that never saw its kind.
struct FamilyFolds {
  std::vector<int> fold;
  int families = 0;
};
FamilyFolds family_folds(const RowList& rows, int max_folds);

// Which constants the rows determine: a module whose rows are also all rows of another term, or
// next to none, is not.
PerParameter<bool> identifiable_constants(const RowList& rows, int min_rows_per_module);

// Pairs of modules of which the rows tell only the sum, because the jobs that use one use the
// other: the first of each pair is identifiable as long as the second is held, and neither may be
// called fitted.
std::vector<std::pair<int, int>> confounded_modules(const RowList& rows, int min_rows_per_module);

// The prediction of each row by the fit of the other folds. Censored rows belong to every fit and
// have no prediction (0). A constant that the remaining rows do not determine falls back to its
// prior, as it would on a GPU never seen with it.
std::vector<double> held_out_predictions(const RowList& rows, const std::vector<int>& fold,
                                         const SolverSetup& setup, const FitOptions& options);

}  // namespace memfathom

// Recalibration: the constants of GPUs from the scored rows themselves, as if those GPUs had been
// calibrated.
#pragma once

#include <vector>

#include "estimator/accuracy/scored_job.h"

namespace memfathom {

// As if each group were a new GPU on which `count` runs were made. They fix its constant and,
// where the rows name neither GPU nor stack, what else they can tell: whether the GPU has TF32
// and whether its PyTorch is older than 2.0 (cuDNN's workspaces depend on both): the reading under
// which the runs agree best. They are not scored, the others are.
void calibrate_by_anchors(std::vector<ScoredJob>& scores, const Estimator& estimator,
                          std::size_t count);

// Out of fold: the constant of each row comes from the rows of its group in the other folds.
void calibrate_by_folds(std::vector<ScoredJob>& scores, std::size_t folds);

}  // namespace memfathom

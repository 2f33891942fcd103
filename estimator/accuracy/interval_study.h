// Interval study: coverage of intervals that do without some of their evidence, reliability over
// all levels, and the Brier score of the probability of fitting.
#pragma once

#include <vector>

#include "estimator/accuracy/accuracy.h"
#include "estimator/accuracy/scored_job.h"

namespace memfathom {

// Scores the rows with intervals that leave out `left_out`; changes the jobs of `rows` where their
// calibration is left out. `rows` must outlive the scores.
std::vector<ScoredJob> score_without(std::vector<MeasuredJob>& rows, const Estimator& estimator,
                                     LeftOut left_out);

// Of device figures at several levels; empty without any.
std::vector<ReliabilityPoint> reliability_of(const std::vector<ScoredJob>& scores);

// Of the rows that only say whether a run fitted.
void set_brier(const std::vector<ScoredJob>& scores, AccuracyReport& report);

}  // namespace memfathom

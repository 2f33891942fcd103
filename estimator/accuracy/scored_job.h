// Scored jobs: estimates of measured jobs beside what was measured.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "estimator/accuracy/measured_jobs.h"
#include "estimator/session/estimator.h"

namespace memfathom {

struct ScoredJob {
  const MeasuredJob* row = nullptr;
  bool answered = false;
  double error = 0;       // (estimated - measured) / measured
  double outside = 0;     // device figures: what the estimate has outside the allocator, bytes
  bool left_out = false;  // an anchor: it was used, so it is not scored
  bool covered = false;
  double width = 0;                   // of the interval, relative to the measurement
  double reserved = 0;                // device figures: what the replay reserves, bytes
  std::optional<double> rank;         // device figures: the probability of at most the measurement
  std::optional<double> probability;  // verdicts: of fitting
  bool verdict_right = false;
  std::string refusal;  // why it was not answered
};

// A job that cannot be answered is counted, never guessed.
ScoredJob score(const MeasuredJob& row, const Estimator& estimator,
                const IntervalStudy& study = {});

// Which interval a row is scored with.
using StudyOfRow = std::function<IntervalStudy(const MeasuredJob&)>;

// Of each row, in their order; `rows` must outlive the scores.
std::vector<ScoredJob> score_all(const std::vector<MeasuredJob>& rows, const Estimator& estimator,
                                 const StudyOfRow& study = {});

}  // namespace memfathom

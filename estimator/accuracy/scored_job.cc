#include "estimator/accuracy/scored_job.h"

#include "core/error.h"
#include "core/parallel_for.h"

namespace memfathom {
namespace {

std::optional<Bytes> figure_of(const Estimate& estimate, const MeasuredJob& row) {
  if (!row.phase.empty()) {
    for (const PhaseLine& phase : estimate.phases) {
      if (phase.name == row.phase)
        return row.metric == Metric::kAllocated ? phase.allocated_peak : phase.reserved;
    }
    return std::nullopt;
  }
  switch (row.metric) {
    case Metric::kAllocated: return estimate.totals.allocated_peak;
    case Metric::kReserved: return estimate.totals.reserved_peak;
    case Metric::kDevice: return estimate.totals.device_peak;
  }
  return std::nullopt;
}

void compare(const Estimate& estimate, ScoredJob& scored) {
  const MeasuredJob& row = *scored.row;
  if (row.fits) {
    scored.answered = estimate.verdict.status != VerdictStatus::kUnknown;
    scored.probability = estimate.verdict.probability_fits;
    scored.verdict_right = (estimate.verdict.status != VerdictStatus::kDoesNotFit) == *row.fits;
    return;
  }
  const std::optional<Bytes> figure = figure_of(estimate, row);
  if (!figure || row.bytes->count() == 0) return;
  const Totals& totals = estimate.totals;
  const double measured = static_cast<double>(row.bytes->count());
  scored.answered = true;
  scored.outside = static_cast<double>((totals.device_peak - totals.reserved_peak).count());
  scored.reserved = static_cast<double>(totals.reserved_peak.count());
  if (row.metric == Metric::kDevice) scored.rank = estimate.probability_of_measured;
  scored.error = (static_cast<double>(figure->count()) - measured) / measured;
  // A run that was measured had the memory that it took.
  const Bytes high = totals.device_high_on_gpu.value_or(totals.device_high);
  scored.covered = *row.bytes >= totals.device_low && *row.bytes <= high;
  scored.width = static_cast<double>((high - totals.device_low).count()) / measured;
}

}  // namespace

ScoredJob score(const MeasuredJob& row, const Estimator& estimator, const IntervalStudy& study) {
  ScoredJob scored;
  scored.row = &row;
  scored.refusal = row.refusal;
  if (!scored.refusal.empty()) return scored;
  try {
    IntervalStudy of_row = study;
    of_row.measured = row.bytes;
    compare(estimator.estimate_for_study(row.job, of_row), scored);
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::kInternal) throw;
    scored.refusal = error.what();
  }
  return scored;
}

std::vector<ScoredJob> score_all(const std::vector<MeasuredJob>& rows, const Estimator& estimator,
                                 const StudyOfRow& study) {
  std::vector<ScoredJob> scores(rows.size());
  parallel_for(rows.size(), [&](std::size_t i) {
    scores[i] = score(rows[i], estimator, study ? study(rows[i]) : IntervalStudy());
  });
  return scores;
}

}  // namespace memfathom

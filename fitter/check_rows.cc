#include "fitter/check_rows.h"

#include <fmt/format.h>

#include <cmath>
#include <set>
#include <tuple>

namespace memfathom {
namespace {

std::string problem_with(const FitRow& row, const FitOptions& options) {
  if (!std::isfinite(row.weight) || row.weight < 0)
    return fmt::format("its weight is {}; it must be 0 or more", row.weight);
  if (row.is_censored() && !row.fits.has_value())
    return "it has neither bytes nor an answer whether it fitted";
  const Bytes reading = row.is_censored() ? row.capacity : *row.measured;
  const char* what = row.is_censored() ? "capacity" : "measurement";
  if (reading.count() <= 0)
    return fmt::format("its {} is {} bytes; it must be positive", what, reading.count());
  if (reading > options.largest_plausible) {
    return fmt::format("its {} is {}; no device holds that", what, to_string(reading));
  }
  const ReplayedJob& job = row.replay;
  for (const Bytes part :
       {job.allocated_peak, job.reserved_peak, job.states, job.activations, job.temporaries,
        job.logits, job.workspaces, job.slack(), Bytes{job.layers}}) {
    if (part.count() < 0)
      return fmt::format("its replay contains {} bytes; sizes are never negative", part.count());
    if (part > options.largest_plausible)
      return fmt::format("its replay contains {}; no device holds that", to_string(part));
  }
  return "";
}

}  // namespace

std::string impossible_row(const std::vector<FitRow>& rows, const FitOptions& options) {
  for (const FitRow& row : rows) {
    const std::string problem = problem_with(row, options);
    if (!problem.empty())
      return fmt::format("row \"{}\" cannot be used: {}; correct or remove it", row.id, problem);
  }
  return "";
}

std::string too_little_data(const std::vector<const FitRow*>& device_rows,
                            const FitOptions& options) {
  std::set<std::tuple<std::int64_t, bool, bool, bool>> jobs;
  int measured = 0;
  for (const FitRow* row : device_rows) {
    if (row->is_censored() || row->weight <= 0) continue;
    ++measured;
    jobs.emplace(row->replay.reserved_peak.count(), row->replay.uses_cublas, row->replay.uses_cudnn,
                 row->replay.uses_cufft);
  }
  if (measured < options.min_samples) {
    return fmt::format(
        "{} measured device totals are too few; at least {} are needed: profile more jobs",
        measured, options.min_samples);
  }
  const int distinct = static_cast<int>(jobs.size());
  if (distinct < options.min_distinct_jobs) {
    return fmt::format(
        "all {} samples are of {} distinct job size{}; at least {} are needed to tell a constant "
        "from a slope",
        measured, distinct, distinct == 1 ? "" : "s", options.min_distinct_jobs);
  }
  return "";
}

}  // namespace memfathom

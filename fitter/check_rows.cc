#include "fitter/check_rows.h"

#include <fmt/format.h>

#include <cmath>
#include <set>
#include <utility>

#include "fitter/folds.h"

namespace memfathom {
namespace {

constexpr int kMinSpreadPages = 10;  // with less, a slope of the replay hides in the constant

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

const char* library_name(ConstantCondition condition) {
  switch (condition) {
    case ConstantCondition::kAlways: return "any library";
    case ConstantCondition::kUsesCublas: return "cuBLAS";
    case ConstantCondition::kUsesCudnn: return "cuDNN";
    case ConstantCondition::kUsesCufft: return "cuFFT";
  }
  return "";
}

// Two libraries that come together or not at all: only the sum of their modules is in the rows.
std::string confounded_libraries(const std::vector<const FitRow*>& device_rows,
                                 const FitOptions& options) {
  const std::vector<std::pair<int, int>> pairs =
      confounded_modules(device_rows, options.min_rows_per_module);
  if (pairs.empty()) return "";
  const char* one = library_name(module_of(pairs.front().first).condition);
  const char* other = library_name(module_of(pairs.front().second).condition);
  return fmt::format(
      "the rows are collinear: the jobs that use {0} are those that use {1}, so what each of them "
      "loads cannot be separated; add {2} jobs that use only one of them",
      other, one, options.min_rows_per_module);
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
  std::set<std::pair<std::int64_t, int>> jobs;
  int measured = 0;
  for (const FitRow* row : device_rows) {
    if (row->is_censored() || row->weight <= 0) continue;
    ++measured;
    jobs.emplace(row->replay.reserved_peak.count(), row->library_pattern());
  }
  if (measured < options.min_samples) {
    return fmt::format(
        "{} measured device totals are too few; at least {} are needed: profile or observe more "
        "jobs",
        measured, options.min_samples);
  }
  const int distinct = static_cast<int>(jobs.size());
  if (distinct < options.min_distinct_jobs) {
    return fmt::format(
        "all {} samples are of {} distinct job size{}; at least {} are needed to tell a constant "
        "from a slope",
        measured, distinct, distinct == 1 ? "" : "s", options.min_distinct_jobs);
  }
  const Bytes spread{jobs.rbegin()->first - jobs.begin()->first};
  if (spread < kMinSpreadPages * options.quantum) {
    return fmt::format(
        "the sizes of all {} samples are within {} of each other, so the constant cannot be "
        "determined (it is collinear with them); profile smaller and larger jobs, at least {} "
        "apart",
        measured, to_string(spread), to_string(kMinSpreadPages * options.quantum));
  }
  return confounded_libraries(device_rows, options);
}

}  // namespace memfathom

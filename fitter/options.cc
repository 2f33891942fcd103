#include "fitter/options.h"

#include <fmt/format.h>

namespace memfathom {
namespace {

bool refuse(std::string* why, std::string reason) {
  if (why != nullptr) *why = std::move(reason);
  return false;
}

bool is_share(double value) { return value > 0 && value < 1; }

}  // namespace

bool FitOptions::is_valid(std::string* why) const {
  if (quantum.count() < 1)
    return refuse(why,
                  fmt::format("quantum is {}; it must be at least 1 byte", to_string(quantum)));
  if (largest_plausible <= quantum) return refuse(why, "largest_plausible must exceed quantum");
  if (min_samples < 2)
    return refuse(why, fmt::format("min_samples is {}; it must be at least 2", min_samples));
  if (min_distinct_jobs < 1) {
    return refuse(why,
                  fmt::format("min_distinct_jobs is {}; it must be at least 1", min_distinct_jobs));
  }
  if (min_rows_per_module < 1) {
    return refuse(
        why, fmt::format("min_rows_per_module is {}; it must be at least 1", min_rows_per_module));
  }
  if (min_group_size < 2)
    return refuse(why, fmt::format("min_group_size is {}; it must be at least 2", min_group_size));
  if (folds < 2) return refuse(why, fmt::format("folds is {}; it must be at least 2", folds));
  if (fold_rows < 10)
    return refuse(why, fmt::format("fold_rows is {}; it must be at least 10", fold_rows));
  if (!is_share(interval_level)) {
    return refuse(why,
                  fmt::format("interval_level is {}; it must lie between 0 and 1", interval_level));
  }
  if (!is_share(group_significance) || !is_share(coverage_significance)) {
    return refuse(why, "group_significance and coverage_significance must lie between 0 and 1");
  }
  if (!(selection_gain >= 0) || !(sibling_spread > 0) || !(max_median_error > 0)) {
    return refuse(why,
                  "selection_gain, sibling_spread and max_median_error must be positive numbers");
  }
  return true;
}

}  // namespace memfathom

// FitOptions: what a fit is allowed to believe, and when it must refuse.
#pragma once

#include <cstdint>
#include <string>

#include "core/bytes.h"
#include "core/environment.h"

namespace memfathom {

struct FitOptions {
  Environment environment;  // whose calibration this becomes
  std::string name;         // "a100-40gb/pytorch"

  // Memory is handed out in pages of this size, so no reading is finer: 2 MiB on a GPU, 4 KiB for a
  // resident set.
  Bytes quantum{2 << 20};
  Bytes largest_plausible{std::int64_t{64} << 40};

  int min_samples = 6;  // "six runs on a new GPU fix its constant; one run is worse than none"
  int min_distinct_jobs = 3;         // equal jobs repeat one reading, they do not confirm the model
  int min_rows_per_module = 3;       // with the library, and without it
  int min_group_size = 39;           // the fewest ratios that can promise 95 %
  double group_significance = 0.01;  // of the test that gives a group an interval of its own

  int folds = 10;
  int fold_rows = 1500;  // a fold is fitted to at most so many rows; four constants need no more
  // For a calibration that will be asked about kinds of rows it never saw (other GPUs, other
  // stacks): intervals and errors are those of whole families left out, each counting alike. The
  // caller gives about as many rows of each.
  bool for_unseen_families = false;
  double selection_gain =
      1.0;  // standard errors by which a module must lower the held-out loss to be kept
  double sibling_spread =
      0.1;  // how far GPUs of one architecture differ, relative: the width of a parent's prior
  double max_median_error = 0.25;  // held out; beyond it an answer helps nobody
  double interval_level = 0.9;
  double coverage_significance = 0.005;  // refuse when so poor a coverage is less likely than this
  double coverage_tolerance = 0.02;      // even if the intervals promised so much less

  std::uint64_t seed = 20260417;  // of the folds: the same rows give the same calibration

  // False, with the reason in `why`, when a field makes no sense.
  bool is_valid(std::string* why) const;
};

}  // namespace memfathom

// Recommend: what would make a job fit: single changes with what each saves, the largest extents,
// whole configurations.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/bytes.h"
#include "core/document.h"
#include "estimator/advise/answers.h"
#include "estimator/advise/patch.h"
#include "estimator/answer/estimate.h"

namespace memfathom {

struct RecommendOptions {
  double margin =
      0.1;  // of the capacity, to be left free; a job that says target.margin keeps its own
  std::optional<double>
      probability;  // "fits" means at least this probability, where a calibration can tell
};

struct LargestExtent {
  std::string name;  // batch_size | sequence_length | image_size | num_frames
  std::int64_t now = 0;
  std::optional<std::int64_t> largest;  // nothing: not even the smallest fits
  bool at_least = false;                // the search ended at its bound, and it still fitted
  Bytes device_peak;
  Node patch;
};

struct Configuration {
  std::string name;                  // conservative | balanced | maximal
  std::string aim;                   // one line
  std::vector<std::string> changes;  // in words; empty: as it is
  Node patch;
  Bytes device_peak;
  std::optional<Bytes> host_peak;
  double used_fraction = 0;          // of what the card has left over from others
  std::int64_t effective_batch = 0;  // over accumulation steps and GPUs
};

struct Recommendation {
  Estimate base;
  std::optional<Bytes> available;       // after the margin; nothing: no target was named
  bool fits = false;                    // the unchanged job, within `available`
  std::vector<Suggestion> suggestions;  // what saves most first
  std::vector<LargestExtent> largest;
  std::vector<Configuration> configurations;  // those that exist, conservative first; [balanced] is
                                              // the cheapest combination
};

Recommendation recommend(const Node& document, const AnswerJob& answer,
                         const RecommendOptions& options);

// The single changes only, for an estimate that does not fit.
std::vector<Suggestion> suggest(const Node& document, const AnswerJob& answer);

const Configuration* configuration_named(const Recommendation& recommendation,
                                         std::string_view name);

}  // namespace memfathom

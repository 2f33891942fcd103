// Recommend: what would make a job fit: single changes with what each saves, the largest extents,
// whole configurations.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/bytes.h"
#include "core/document.h"
#include "estimator/advise/estimate_cache.h"
#include "estimator/answer/estimate.h"
#include "estimator/job/patch.h"

namespace memfathom {

struct RecommendOptions {
  // Of the capacity, to be left free. A job that says target.margin keeps its own, and where a
  // probability is asked for that is the margin.
  double margin = 0.1;
  // "fits" means at least this probability, where a calibration can tell.
  std::optional<double> probability;
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
  std::optional<Bytes> host_peak, host_of_node;  // of one GPU's process, of all on a node
  double used_fraction = 0;                      // of what the GPU has left over from others
  std::int64_t effective_batch = 0;              // over accumulation steps and GPUs
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

// All of these read the document; `original` is a job that was read from it or from one like it,
// whose model is shared where it is the same.
Recommendation recommend(const Node& document, const EstimateFunction& answer,
                         const RecommendOptions& options, const Job& original = {});

// The largest batch that fits, nothing else; nothing without a target.
struct LargestBatch {
  std::optional<std::int64_t> size;  // nothing: not even one sample fits
  Bytes device_peak;
  Bytes available;
};
std::optional<LargestBatch> largest_batch(const Node& document, const EstimateFunction& answer,
                                          const RecommendOptions& options,
                                          const Job& original = {});

// The cheapest combination of changes that fits, nothing else; nothing when there is none.
std::optional<Configuration> cheapest_configuration(const Node& document,
                                                    const EstimateFunction& answer,
                                                    const RecommendOptions& options,
                                                    const Job& original = {});

// The single changes only, for an estimate that does not fit.
std::vector<Suggestion> suggest(const Node& document, const EstimateFunction& answer,
                                const Job& original = {});

const Configuration* configuration_named(const Recommendation& recommendation,
                                         std::string_view name);

}  // namespace memfathom

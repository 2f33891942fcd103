// Recommend: what would make a job fit: single changes with what each saves, the largest extents,
// whole configurations.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/bytes.h"
#include "core/document.h"
#include "estimator/advise/combine.h"
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
  // What a node's processes may keep on the host, where the job does not say target.host_memory.
  std::optional<Bytes> host_memory;
  // Of all changes those that may be part of a configuration; nothing: all.
  ChangeFilter usable;
  bool frontier = false;
  // Called after each estimate of the search, from any thread.
  std::function<void()> on_estimate;
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
  std::string name;                  // conservative | balanced | maximal | same-training
  std::string aim;                   // one line
  std::vector<std::string> changes;  // in words; empty: as it is
  Node patch;
  Bytes device_peak;
  std::optional<Bytes> host_peak, host_of_node;  // of one GPU's process, of all on a node
  double used_fraction = 0;                      // of what the GPU has left over from others
  std::int64_t effective_batch = 0;              // over accumulation steps and GPUs
  bool trains_the_same = true;                   // the result is that of the unchanged job
  double time_factor = 1;                        // as of a suggestion
  std::string time_basis;
};

// A set of changes that no other one beats in memory and in time. Those that train something else
// are compared with all, those that train the same only with each other.
struct FrontierPoint {
  std::vector<std::string> names, changes;
  Node patch;
  Bytes device_peak;
  std::optional<Bytes> host_of_node;
  double time_factor = 1;
  std::string time_basis;
  bool trains_the_same = true;
  bool fits = false;
};

struct Recommendation {
  Estimate base;
  std::optional<Bytes> available;       // after the margin; nothing: no target was named
  bool fits = false;                    // the unchanged job, within `available`
  std::optional<Bytes> host_memory;     // the limit of the host, where one is known
  std::vector<Suggestion> suggestions;  // by kind, the cheapest first; of a kind, what saves most
  std::vector<LargestExtent> largest;
  std::vector<Configuration> configurations;  // those that exist, conservative first; [balanced] is
                                              // the cheapest combination
  std::vector<FrontierPoint> frontier;        // if asked for; the quickest first
  std::string speed;                          // the rates behind the time factors, in a sentence
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

// Whether a document fits as it is, with the margin of a recommendation; nothing without a target.
struct CheckedFit {
  bool fits = false;
  Bytes device_peak;
  Bytes available;
};
std::optional<CheckedFit> check_fit(const Node& document, const EstimateFunction& answer,
                                    const RecommendOptions& options);

// The single changes only, for an estimate that does not fit.
std::vector<Suggestion> suggest(const Node& document, const EstimateFunction& answer,
                                const Job& original = {}, std::optional<Estimate> base = {});

const Configuration* configuration_named(const Recommendation& recommendation,
                                         std::string_view name);

}  // namespace memfathom

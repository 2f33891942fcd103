// Rule of thumb: what the old calculator would have said, for comparison.
#pragma once

#include <optional>

#include "core/bytes.h"
#include "core/document.h"
#include "estimator/answer/estimate.h"
#include "estimator/job/job.h"

namespace memfathom {

// batch x height x width x hidden x 4 bytes for each layer, safe when all layers stay below 70 % of
// the GPU.
struct RuleOfThumb {
  Bytes per_layer;
  Bytes activations;
  std::optional<Bytes> limit;  // 70 % of the capacity
  bool safe = false;
};

// `job` is what `document` says. Nothing when the job has no image, width and depth to put into the
// formula.
std::optional<RuleOfThumb> rule_of_thumb(const Node& document, const Job& job,
                                         const Estimate& estimate);

}  // namespace memfathom

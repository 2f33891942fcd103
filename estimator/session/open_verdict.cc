#include "estimator/session/open_verdict.h"

#include <algorithm>
#include <array>

#include "estimator/readers/gpu_count.h"

namespace memfathom {
namespace {

void leave_open(const char* reason, Estimate& estimate) {
  estimate.verdict.status = VerdictStatus::kUndecided;
  estimate.verdict.probability_fits.reset();
  estimate.warnings.emplace_back(reason);
}

// Whether what does not depend on the samples fills the GPU alone, at the latest in the optimizer's
// step, where all gradients are alive.
bool is_full_without_samples(const Estimate& estimate) {
  constexpr auto kWithoutSamples =
      std::to_array<Component>({Component::kParameters, Component::kAdapterParameters,
                                Component::kGradients, Component::kOptimizerState});
  std::int64_t largest = 0;
  for (const PhaseLine& phase : estimate.phases) {
    std::int64_t sum = 0;
    for (const Component one : kWithoutSamples)
      sum += phase.live_at_peak[static_cast<std::size_t>(one)];
    largest = std::max(largest, sum);
  }
  const Bytes outside = estimate.totals.device_peak - estimate.totals.reserved_peak;
  return estimate.verdict.available && Bytes{largest} + outside > *estimate.verdict.available;
}

}  // namespace

void leave_what_is_not_said_open(const Node& document, const MergedJob& files, Estimate& estimate) {
  if (estimate.verdict.status != VerdictStatus::kDoesNotFit) return;
  if (shards_among_unknown(document)) {
    leave_open(
        "the job is sharded and does not say among how many GPUs; with more of them it takes less "
        "on each (--num-gpus)",
        estimate);
  } else if (files.is_length_assumed && !is_full_without_samples(estimate)) {
    leave_open(
        "no file sets the sequence length, and with shorter samples the job may fit "
        "(--sequence-length)",
        estimate);
  }
}

}  // namespace memfathom

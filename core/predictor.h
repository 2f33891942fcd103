// Predictor: coefficients x a replayed job -> bytes. Templated so that Ceres and the estimator run
// the same code.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "core/bytes.h"
#include "core/library_constants.h"

namespace memfathom {

// What the dry run of a job says: the reserved peak, which libraries were used, and how the peak is
// made up.
struct ReplayedJob {
  Bytes allocated_peak;
  Bytes reserved_peak;
  bool uses_cublas = false;
  bool uses_cudnn = false;
  bool uses_cufft = false;
  // Bytes at the allocated peak by group, for the diagnostic factors theta.
  Bytes states, activations, temporaries, logits, workspaces;
  std::int64_t layers =
      0;  // modules with parameters, where known: lets a fit notice a missing term per layer
  Bytes slack() const { return reserved_peak - allocated_peak; }
};

enum ThetaIndex { kStates, kActivations, kTemporaries, kLogits, kWorkspaces, kSlack, kThetaCount };

constexpr bool applies_to(ConstantCondition condition, const ReplayedJob& job) {
  switch (condition) {
    case ConstantCondition::kAlways: return true;
    case ConstantCondition::kUsesCublas: return job.uses_cublas;
    case ConstantCondition::kUsesCudnn: return job.uses_cudnn;
    case ConstantCondition::kUsesCufft: return job.uses_cufft;
  }
  return false;
}

// `total` and the constants that the job pays for; `constants` has one value per row of
// kLibraryConstants.
template <typename T>
T add_constants(const ReplayedJob& job, const T* constants, T total) {
  for (std::size_t i = 0; i < kConstantCount; ++i) {
    if (applies_to(kLibraryConstants[i].condition, job)) total += constants[i];
  }
  return total;
}

// Device bytes with the replay at coefficient 1: the job's constants and the reserved peak.
template <typename T>
T predict_device(const ReplayedJob& job, const T* constants) {
  return add_constants(job, constants, T(static_cast<double>(job.reserved_peak.count())));
}

// What factors theta (neutral at 1) would add to it: never part of the answer, shown as
// `unaccounted`.
template <typename T>
T predict_unaccounted(const ReplayedJob& job, const T* theta) {
  const std::array<Bytes, kThetaCount> groups{job.states, job.activations, job.temporaries,
                                              job.logits, job.workspaces,  job.slack()};
  T extra(0.0);
  for (int g = 0; g < kThetaCount; ++g) {
    extra +=
        (theta[g] - T(1.0)) * T(static_cast<double>(groups[static_cast<std::size_t>(g)].count()));
  }
  return extra;
}

}  // namespace memfathom

// Checkpointed: a segment run the way the job's gradient_checkpointing wants it.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/error.h"
#include "estimator/models/blocks/settings.h"
#include "kernels/framework/tensor/checkpoint.h"

namespace memfathom {

// Throws Error(kInput) where the job wants checkpoints and the library has none for the family.
inline void refuse_checkpoints(const ModelSettings& settings, const std::string& family) {
  if (settings.checkpointing == Checkpointing::kNone) return;
  throw Error(ErrorKind::kInput, "transformers' " + family +
                                     " does not support gradient checkpointing; leave "
                                     "training.gradient_checkpointing out");
}

inline Tensor run_checkpointed(const ModelSettings& settings, const CheckpointedFunction& segment,
                               const Tensor& x) {
  switch (settings.checkpointing) {
    case Checkpointing::kNone: return segment(x);
    case Checkpointing::kFull:
      return settings.checkpoint_reentrant ? checkpoint_reentrant(segment, x)
                                           : checkpoint(segment, x);
    case Checkpointing::kSelective: return checkpoint(segment, x, CheckpointPolicy::kSelective);
  }
  return segment(x);
}

// The same for a segment with several inputs and outputs. A tensor with a gradient history must be
// an input: backward of a reentrant checkpoint stops at the inputs, and through anything else it
// would run once per segment.
inline std::vector<Tensor> run_checkpointed(const ModelSettings& settings,
                                            const CheckpointedMultiFunction& segment,
                                            std::span<const Tensor> inputs) {
  if (settings.checkpointing == Checkpointing::kFull && settings.checkpoint_reentrant)
    return checkpoint_reentrant(segment, inputs);
  const auto outputs = std::make_shared<std::vector<Tensor>>();
  const CheckpointedFunction first =
      [segment, outputs,
       given = std::vector<Tensor>(inputs.begin() + 1, inputs.end())](const Tensor& x) {
        std::vector<Tensor> all{x};
        all.insert(all.end(), given.begin(), given.end());
        *outputs = segment(all);
        return std::move(outputs->front());
      };
  Tensor output = run_checkpointed(settings, first, inputs.front());
  std::vector<Tensor> results = std::move(*outputs);
  results.front() = std::move(output);
  return results;
}

}  // namespace memfathom

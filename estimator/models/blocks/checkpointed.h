// Checkpointed: a segment run the way the job's gradient_checkpointing wants it.
#pragma once

#include "estimator/models/blocks/settings.h"
#include "kernels/framework/tensor/checkpoint.h"

namespace memfathom {

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

}  // namespace memfathom

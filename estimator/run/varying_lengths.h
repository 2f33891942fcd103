// Varying lengths: what the allocator comes to hold when every batch has another length.
#pragma once

#include "core/bytes.h"
#include "estimator/job/job.h"
#include "kernels/layers/training_loop.h"

namespace memfathom {

// Plays further iterations with lengths drawn uniformly up to the longest, always the same ones, and gives the
// reserved peak they lead to. Blocks of one length seldom fit the next, so it lies above that of a fixed length.
Bytes vary_lengths(Session& session, TrainingLoop& loop, Network& network, const TrainingSpec& training);

}  // namespace memfathom

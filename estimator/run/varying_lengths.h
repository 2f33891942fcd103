// Varying lengths: what the allocator comes to hold when every batch has another length.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "estimator/job/job.h"
#include "kernels/framework/layers/training_loop.h"

namespace memfathom {

// Plays iterations with lengths drawn uniformly up to the longest, always the same ones. Blocks of
// one length seldom fit the next, so more is reserved than with a fixed length. Models without a
// length run as they are.
void vary_lengths(TrainingLoop& loop, Network& network, std::int64_t longest);

// Says that all lengths were taken as equal, where the job leaves it open and it makes a
// difference. Returns whether it does.
bool note_lengths(const Job& job, Network& network, std::vector<std::string>& assumptions);

}  // namespace memfathom

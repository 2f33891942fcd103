// Model parallelism: the part of a model that one GPU of a tensor-parallel group or of a pipeline
// holds.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "estimator/job/job.h"

namespace memfathom {

// The job of one GPU: heads, feed-forward width and vocabulary over `parallel.tensor`, blocks over
// `parallel.pipeline`; hidden size and norms stay whole. Throws Error(kInput) where the family
// cannot be split so.
Job job_of_one_gpu(const Job& job, std::vector<std::string>& assumptions);

// Micro-batches whose activations the first stage holds at once.
std::int64_t micro_batches_in_flight(const Job& job);

}  // namespace memfathom

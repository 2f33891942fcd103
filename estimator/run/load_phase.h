// Load phase: what loading brings to the GPU beside the weights.
#pragma once

#include "estimator/job/job.h"
#include "estimator/job_model/built_model.h"
#include "kernels/framework/tensor/session.h"

namespace memfathom {

// `model.load: {shard: 10GB, device: cuda}`: a file's tensors lie on the GPU while they are copied
// into the model.
void load_shard(Session& session, const Job& job, const BuiltModel& model);

}  // namespace memfathom

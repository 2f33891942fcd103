// Stack versions: what the libraries of a job's stack do differently from today's.
#pragma once

#include "estimator/job/job.h"
#include "kernels/tensor/framework_policy.h"

namespace memfathom {

// Fills in what the job leaves open: a library whose version is not given is of the time of the
// PyTorch in `policy`.
void apply_stack(Job& job, FrameworkPolicy& policy);

}  // namespace memfathom

// Stack versions: what the libraries of a job's stack do differently from today's.
#pragma once

#include <string_view>

#include "estimator/job/job.h"
#include "kernels/tensor/framework_policy.h"

namespace memfathom {

// Which bitsandbytes a job runs that names none.
enum class Bitsandbytes { kOfItsTime, kTodays };

// Fills in what the job leaves open: a library whose version is not given is of the time of the
// PyTorch in `policy`.
void apply_stack(Job& job, FrameworkPolicy& policy,
                 Bitsandbytes unnamed = Bitsandbytes::kOfItsTime);

// Whether a stack asks cuDNN as PyTorch did before 2.0. A card older than Turing whose stack nobody
// names is taken to run one of its time.
bool asks_older_cudnn(std::string_view torch_version, int compute_capability);

}  // namespace memfathom

// Stack versions: what the libraries of a job's stack do differently from today's.
#pragma once

#include <string>
#include <string_view>

#include "estimator/job/job.h"
#include "kernels/framework/tensor/framework_policy.h"

namespace memfathom {

// Which bitsandbytes a job runs that names none.
enum class BitsandbytesRelease { kContemporary, kCurrent };

// Fills in what the job leaves open: a library whose version is not given is of the time of the
// PyTorch in `policy`.
void apply_stack(Job& job, FrameworkPolicy& policy,
                 BitsandbytesRelease unnamed = BitsandbytesRelease::kContemporary);

// The PyTorch of published runs: the version given or, on a GPU older than Turing whose stack is
// unrecorded, one of the GPU's time. Empty: the current one.
std::string torch_of(std::string_view version, int compute_capability);

// Whether a stack asks cuDNN as PyTorch did before 2.0.
bool uses_older_cudnn_api(std::string_view torch_version);

}  // namespace memfathom

// Protocol: takes one sample, in a process started only for it.
#pragma once

#include "profiler/job_runner.h"
#include "profiler/probe_message.h"

namespace memfathom {

// Baseline, context, first use of each library, tensors, warm-up step, measured steps; reads the
// device's memory after each. Out of memory is a result: a sample with that status. Other Errors
// propagate to the caller.
ProbeReply measure(const ProbeRequest& request, const JobRunner& runner);

}  // namespace memfathom

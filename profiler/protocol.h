// Protocol: how one sample is taken, in the process that was started for it alone.
#pragma once

#include "profiler/job_runner.h"
#include "profiler/probe_message.h"

namespace memfathom {

// Baseline, context, first use of each library, tensors, warm-up step, measured steps; the device's
// memory is read after each. Out of memory is an answer: a sample of that status. Other Errors are
// the caller's.
ProbeReply measure(const ProbeRequest& request, const JobRunner& runner);

}  // namespace memfathom

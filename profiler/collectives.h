// Collectives: the workloads of several ranks, which the PyTorch probe runs in processes of its
// own.
#pragma once

#include "profiler/plan.h"

namespace memfathom {

// Communicators of 2, 4, 8, ... ranks and of all `devices`; with NCCL also two ranks with 1, 4 and
// 16 channels. What needs more devices than there are is added to the plan's `left_out`.
void add_collectives(DeviceKind kind, int devices, Plan& plan);

}  // namespace memfathom

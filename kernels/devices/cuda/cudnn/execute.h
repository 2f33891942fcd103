// execute: runs a plan on a GPU: the only use of cuDNN that needs a handle, and the only one the
// tests replace.
#pragma once

#include <cudnn_graph.h>

#include <span>

#include "kernels/devices/cuda/cudnn/graph.h"
#include "kernels/devices/cuda/cudnn/plan.h"

namespace memfathom::cudnn {

struct TensorBinding {
  TensorId id;
  void* data;  // device memory; a value on the host for tensors passed by value
};

// Runs `plan` on the handle's stream. `workspace` is device memory of at least plan.workspace()
// bytes, or null if that is 0.
void execute(cudnnHandle_t handle, const ExecutionPlan& plan,
             std::span<const TensorBinding> operands, void* workspace);

}  // namespace memfathom::cudnn

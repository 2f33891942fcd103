// Executing a plan on a GPU: the only part of cuDNN's use that needs a handle, and the only one the
// tests' double replaces.
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
// bytes, or null for none.
void execute(cudnnHandle_t handle, const ExecutionPlan& plan,
             std::span<const TensorBinding> operands, void* workspace);

}  // namespace memfathom::cudnn

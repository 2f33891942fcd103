// Engine: runs the tape backward in PyTorch's order: ready nodes by descending sequence number,
// leaves first.
#pragma once

#include "kernels/tensor/tape_node.h"
#include "kernels/tensor/tensor.h"

namespace memfathom {

// Where a tensor's gradient goes: the node that made it, or the accumulator of a leaf.
Edge gradient_edge(const Tensor& tensor);

// loss.backward(): the root gradient is a tensor of ones. Leaves hold their gradients afterwards.
void run_backward(const Tensor& loss);
void run_backward(const Tensor& root, const Tensor& gradient);

}  // namespace memfathom

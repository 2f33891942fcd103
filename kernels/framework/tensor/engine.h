// Engine: runs the tape backward in PyTorch's order: ready nodes by descending sequence number,
// leaves first.
#pragma once

#include <cstdint>
#include <span>

#include "kernels/framework/tensor/tape_node.h"
#include "kernels/framework/tensor/tensor.h"

namespace memfathom {

// The destination of a tensor's gradient: the node that created it, or a leaf's accumulator.
Edge gradient_edge(const Tensor& tensor);

// Whether the graph's saved tensors are freed node by node or kept for another backward
// (retain_graph=True).
enum class GraphRetention : std::uint8_t { kFreed, kRetained };

// loss.backward(): the root gradient is a tensor of ones. Leaves hold their gradients afterwards.
void run_backward(const Tensor& loss, GraphRetention graph = GraphRetention::kFreed);
// torch.autograd.backward(roots, gradients): from several tensors at once.
void run_backward(std::span<const Tensor> roots, std::span<const Tensor> gradients,
                  GraphRetention graph = GraphRetention::kFreed);

}  // namespace memfathom

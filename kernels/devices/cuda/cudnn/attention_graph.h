// attention_graph: the part of an attention's workspace that holds the graph's intermediate
// results.
#pragma once

#include "core/bytes.h"
#include "kernels/devices/cuda/cudnn/graph.h"

namespace memfathom::cudnn {

// kDQSums and kRowSums follow cuDNN's own workspace: NVIDIA's frontend, and so PyTorch, allocates
// the same total. 0 for the forward pass.
struct AttentionScratch {
  Bytes dq_sums, row_sums;
  Bytes total() const { return dq_sums + row_sums; }
};

AttentionScratch scratch_of(const AttentionQuery& attention);

}  // namespace memfathom::cudnn

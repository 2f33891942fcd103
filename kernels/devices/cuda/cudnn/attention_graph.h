// The part of an attention's workspace that we divide up ourselves: what its graph puts down
// between two of its operations.
#pragma once

#include "core/bytes.h"
#include "kernels/devices/cuda/cudnn/graph.h"

namespace memfathom::cudnn {

// After cuDNN's own workspace come kDQSums and kRowSums: NVIDIA's frontend, and so PyTorch,
// allocates the same total. Nothing for the forward pass.
struct AttentionScratch {
  Bytes dq_sums, row_sums;
  Bytes total() const { return dq_sums + row_sums; }
};

AttentionScratch scratch_of(const AttentionQuery& attention);

}  // namespace memfathom::cudnn

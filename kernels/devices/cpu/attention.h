// Attention on the cpu: matrix products of blocks of queries with all keys, without a full score
// matrix.
#pragma once

#include "kernels/framework/device/calls.h"

namespace memfathom::cpu {

void run_attention(const AttentionCall& call);

}  // namespace memfathom::cpu

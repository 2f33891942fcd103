// Attention on the cpu: blocks of queries against all keys by matrix products; no full score matrix
// is kept.
#pragma once

#include "kernels/framework/device/calls.h"

namespace memfathom::cpu {

void run_attention(const AttentionCall& call);

}  // namespace memfathom::cpu

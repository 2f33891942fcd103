// Loops: calls that the cpu device computes itself, on dense chunks of operands. Each gives the
// result of run_reference up to the order of sums; tests compare them.
#pragma once

#include "kernels/framework/device/calls.h"

namespace memfathom::cpu {

void run_loops(const ElementwiseCall& call);
void run_loops(const ReduceCall& call);
void run_loops(const SoftmaxCall& call);
void run_loops(const NormCall& call);
void run_loops(const PoolCall& call);
void run_loops(const UpsampleCall& call);
void run_loops(const OptimizerCall& call);

}  // namespace memfathom::cpu

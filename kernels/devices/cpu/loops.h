// Loops: the calls that the cpu device computes itself, on dense stretches of operands rather than
// element by element. Each gives what run_reference gives, up to the order of sums; tests hold them
// together.
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

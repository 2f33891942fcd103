// Reference: every call computed by plain loops, one element or row at a time; what the other
// devices are held against.
//
// Whatever sums (gemm, convolution, fft, softmax, norms, attention, reductions) is computed in fp64
// whatever the operands are, and rounded once when it is stored; everything else in the type that
// kernels/framework/device/calls.h names. Works on host memory. Throws Error(kInternal) for a call
// that makes no sense.
#pragma once

#include "kernels/framework/device/calls.h"

namespace memfathom {

void run_reference(const ElementwiseCall& call);
void run_reference(const ReduceCall& call);
void run_reference(const SoftmaxCall& call);
void run_reference(const NormCall& call);
void run_reference(const NllCall& call);
void run_reference(const DropoutCall& call);
void run_reference(const GemmCall& call);
void run_reference(const ConvolutionCall& call);
void run_reference(const PoolCall& call);
void run_reference(const UpsampleCall& call);
void run_reference(const FftCall& call);
void run_reference(const AttentionCall& call);
void run_reference(const EmbeddingCall& call);
void run_reference(const OptimizerCall& call);

}  // namespace memfathom

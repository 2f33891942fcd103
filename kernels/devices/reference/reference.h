// Reference: every call computed by plain loops, one element or row at a time; other devices are
// compared with it.
//
// Calls with sums (gemm, convolution, fft, softmax, norms, attention, reductions) are computed in
// fp64 for all operand types and rounded once when stored; everything else in the type that
// kernels/framework/device/calls.h defines. Works on host memory. Throws Error(kInternal) for an
// invalid call.
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

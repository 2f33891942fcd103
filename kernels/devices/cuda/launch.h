// launch: the interface to our own kernels. Each function submits a call to a stream and returns
// the launch's status.
//
// Implemented by the .cu files of this folder and, in the tests, by host loops over the same work
// (work/*.h).
#pragma once

#include <cuda_runtime_api.h>

#include "kernels/framework/device/calls.h"

namespace memfathom::cuda {

cudaError_t launch(const ElementwiseCall& call, cudaStream_t stream);
cudaError_t launch(const ReduceCall& call, cudaStream_t stream);
cudaError_t launch(const SoftmaxCall& call, cudaStream_t stream);
cudaError_t launch(const NormCall& call, cudaStream_t stream);
cudaError_t launch(const NllCall& call, cudaStream_t stream);
cudaError_t launch(const DropoutCall& call, cudaStream_t stream);
cudaError_t launch(const PoolCall& call, cudaStream_t stream);
cudaError_t launch(const UpsampleCall& call, cudaStream_t stream);
cudaError_t launch(const AttentionCall& call, cudaStream_t stream);
cudaError_t launch(const EmbeddingCall& call, cudaStream_t stream);
cudaError_t launch(const OptimizerCall& call, cudaStream_t stream);
// For operands that cuBLAS cannot read (is_blas_compatible in gemm_layout.h).
cudaError_t launch(const GemmCall& call, cudaStream_t stream);

// The largest head size that launch(AttentionCall) supports: its features are spread over the
// registers of a warp.
constexpr std::int64_t kMaxSupportedHeadSize = 256;

}  // namespace memfathom::cuda

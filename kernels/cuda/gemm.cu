#include "kernels/cuda/grid.cuh"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/work/gemm.h"

namespace memfathom::cuda {

cudaError_t launch(const GemmCall& call, cudaStream_t stream) {
  return launch_on_grid(call, stream);
}

}  // namespace memfathom::cuda

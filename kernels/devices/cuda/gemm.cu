#include "kernels/devices/cuda/grid.cuh"
#include "kernels/devices/cuda/launch.h"
#include "kernels/devices/cuda/work/gemm.h"

namespace memfathom::cuda {

cudaError_t launch(const GemmCall& call, cudaStream_t stream) {
  return launch_on_grid(call, stream);
}

}  // namespace memfathom::cuda

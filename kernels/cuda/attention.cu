#include "kernels/cuda/grid.cuh"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/work/attention.h"

namespace memfathom::cuda {

cudaError_t launch(const AttentionCall& call, cudaStream_t stream) {
  return launch_on_grid(call, stream);
}

}  // namespace memfathom::cuda

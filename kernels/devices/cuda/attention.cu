#include "kernels/devices/cuda/grid.cuh"
#include "kernels/devices/cuda/launch.h"
#include "kernels/devices/cuda/work/attention.h"

namespace memfathom::cuda {

cudaError_t launch(const AttentionCall& call, cudaStream_t stream) {
  return launch_on_grid(call, stream);
}

}  // namespace memfathom::cuda

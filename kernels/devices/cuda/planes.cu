#include "kernels/devices/cuda/grid.cuh"
#include "kernels/devices/cuda/launch.h"
#include "kernels/devices/cuda/work/planes.h"

namespace memfathom::cuda {

cudaError_t launch(const PoolCall& call, cudaStream_t stream) {
  return launch_on_grid(call, stream);
}
cudaError_t launch(const UpsampleCall& call, cudaStream_t stream) {
  return launch_on_grid(call, stream);
}
cudaError_t launch(const EmbeddingCall& call, cudaStream_t stream) {
  return launch_on_grid(call, stream);
}

}  // namespace memfathom::cuda

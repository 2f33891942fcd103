#include "kernels/devices/cuda/grid.cuh"
#include "kernels/devices/cuda/launch.h"
#include "kernels/devices/cuda/work/elementwise.h"

namespace memfathom::cuda {

cudaError_t launch(const ElementwiseCall& call, cudaStream_t stream) {
  return launch_on_grid(call, stream);
}
cudaError_t launch(const DropoutCall& call, cudaStream_t stream) {
  return launch_on_grid(call, stream);
}
cudaError_t launch(const OptimizerCall& call, cudaStream_t stream) {
  return launch_on_grid(call, stream);
}

}  // namespace memfathom::cuda

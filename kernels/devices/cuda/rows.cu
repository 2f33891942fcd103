#include "kernels/devices/cuda/grid.cuh"
#include "kernels/devices/cuda/launch.h"
#include "kernels/devices/cuda/work/norm.h"
#include "kernels/devices/cuda/work/rows.h"

namespace memfathom::cuda {

cudaError_t launch(const ReduceCall& call, cudaStream_t stream) {
  return launch_on_grid(call, stream);
}
cudaError_t launch(const SoftmaxCall& call, cudaStream_t stream) {
  return launch_on_grid(call, stream);
}
cudaError_t launch(const NllCall& call, cudaStream_t stream) {
  return launch_on_grid(call, stream);
}
cudaError_t launch(const NormCall& call, cudaStream_t stream) {
  return launch_on_grid(call, stream);
}

}  // namespace memfathom::cuda

#include "kernels/cuda/grid.cuh"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/work/norm.h"
#include "kernels/cuda/work/rows.h"

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

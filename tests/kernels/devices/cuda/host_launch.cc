// The launch seam on the host: the same work as the .cu files, one item after the other, on the
// doubles' memory.
#include <cuda_runtime_api.h>

#include <initializer_list>
#include <utility>

#include "kernels/devices/cuda/launch.h"
#include "kernels/devices/cuda/work/attention.h"
#include "kernels/devices/cuda/work/elementwise.h"
#include "kernels/devices/cuda/work/gemm.h"
#include "kernels/devices/cuda/work/norm.h"
#include "kernels/devices/cuda/work/planes.h"
#include "kernels/devices/cuda/work/rows.h"
#include "tests/kernels/devices/cuda/doubles/control.h"
#include "tests/kernels/devices/cuda/doubles/operand_view.h"

namespace memfathom::cuda {
namespace {

struct HostExecutor {
  template <typename Work>
  void each(std::int64_t n, const Work& work) const {
    for (std::int64_t i = 0; i < n; ++i) work(i);
  }
  template <typename Work>
  void rows(std::int64_t n, const Work& work) const {
    for (std::int64_t r = 0; r < n; ++r) work(SingleTeam{}, r);
  }
  template <typename Work>
  void narrow_rows(std::int64_t n, const Work& work) const {
    rows(n, work);
  }
};

// A launch as cudart sees it: it may be refused, the context may be poisoned, and memory that is
// not the device's is an illegal address, which poisons it.
template <typename Call>
cudaError_t launch_on_host(Call& call, std::initializer_list<Operand*> operands,
                           cudaStream_t stream) {
  const int injected = doubles::enter("cudaLaunchKernel");
  if (doubles::sticky_error() != 0) return static_cast<cudaError_t>(doubles::sticky_error());
  if (injected != 0) return static_cast<cudaError_t>(injected);
  if (!doubles::alive("stream", stream)) {
    return static_cast<cudaError_t>(
        doubles::refuse("launch", "the stream does not exist", cudaErrorInvalidResourceHandle));
  }
  for (Operand* operand : operands) {
    if (doubles::to_host(*operand, "launch", "an operand")) continue;
    doubles::fail("cudaLaunchKernel", 1, cudaErrorIllegalAddress, true);
    doubles::enter("cudaLaunchKernel");
    return cudaErrorIllegalAddress;
  }
  HostExecutor executor;
  submit(executor, std::as_const(call));
  return cudaSuccess;
}

}  // namespace

cudaError_t launch(const ElementwiseCall& call, cudaStream_t stream) {
  ElementwiseCall c = call;
  return launch_on_host(c, {&c.out, &c.a, &c.b, &c.c}, stream);
}
cudaError_t launch(const ReduceCall& call, cudaStream_t stream) {
  ReduceCall c = call;
  return launch_on_host(c, {&c.out, &c.in}, stream);
}
cudaError_t launch(const SoftmaxCall& call, cudaStream_t stream) {
  SoftmaxCall c = call;
  return launch_on_host(c, {&c.out, &c.in, &c.y}, stream);
}
cudaError_t launch(const NormCall& call, cudaStream_t stream) {
  NormCall c = call;
  return launch_on_host(c,
                        {&c.x, &c.weight, &c.bias, &c.y, &c.mean, &c.rstd, &c.running_mean,
                         &c.running_var, &c.dy, &c.dx, &c.dweight, &c.dbias},
                        stream);
}
cudaError_t launch(const NllCall& call, cudaStream_t stream) {
  NllCall c = call;
  return launch_on_host(
      c, {&c.log_probabilities, &c.target, &c.loss, &c.total_weight, &c.grad_loss, &c.grad_input},
      stream);
}
cudaError_t launch(const DropoutCall& call, cudaStream_t stream) {
  DropoutCall c = call;
  return launch_on_host(c, {&c.x, &c.y, &c.mask}, stream);
}
cudaError_t launch(const PoolCall& call, cudaStream_t stream) {
  PoolCall c = call;
  return launch_on_host(c, {&c.x, &c.y, &c.indices, &c.dy, &c.dx}, stream);
}
cudaError_t launch(const UpsampleCall& call, cudaStream_t stream) {
  UpsampleCall c = call;
  return launch_on_host(c, {&c.in, &c.out}, stream);
}
cudaError_t launch(const AttentionCall& call, cudaStream_t stream) {
  AttentionCall c = call;
  return launch_on_host(
      c, {&c.q, &c.k, &c.v, &c.mask, &c.out, &c.logsumexp, &c.dout, &c.dq, &c.dk, &c.dv}, stream);
}
cudaError_t launch(const EmbeddingCall& call, cudaStream_t stream) {
  EmbeddingCall c = call;
  return launch_on_host(c, {&c.table, &c.index, &c.out}, stream);
}
cudaError_t launch(const GemmCall& call, cudaStream_t stream) {
  GemmCall c = call;
  return launch_on_host(c, {&c.out, &c.a, &c.b, &c.bias}, stream);
}
cudaError_t launch(const OptimizerCall& call, cudaStream_t stream) {
  OptimizerCall c = call;
  return launch_on_host(c, {&c.parameter, &c.gradient, &c.state1, &c.state2}, stream);
}

}  // namespace memfathom::cuda

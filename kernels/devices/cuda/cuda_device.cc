#include "kernels/devices/cuda/cuda_device.h"

#include <fmt/format.h>

#include <utility>

#include "core/error.h"
#include "kernels/devices/cuda/environment.h"
#include "kernels/devices/cuda/launch.h"
#include "kernels/devices/cuda/status.h"
#include "kernels/devices/element/visit_elementwise.h"

namespace memfathom::cuda {
namespace {

// All other members need the device to be current during construction.
int made_current(int index) {
  check(cudaSetDevice(index), fmt::format("cudaSetDevice({})", index));
  return index;
}

bool succeeded(cudaError_t status) { return status == cudaSuccess; }
bool succeeded(cublasStatus_t status) { return status == CUBLAS_STATUS_SUCCESS; }
bool succeeded(cufftResult status) { return status == CUFFT_SUCCESS; }

std::size_t count_of(Bytes bytes) { return static_cast<std::size_t>(bytes.count()); }

bool has_complex_form(Elementwise op) {
  return element::visit_complex_elementwise(op, [](auto) {});
}

}  // namespace

CudaDevice::CudaDevice(int index)
    : index_(made_current(index)),
      segments_(index),
      stream_(make_stream()),
      gemm_(stream_.get()),
      fft_(stream_.get()),
      dnn_(stream_.get()),
      convolutions_(dnn_),
      attention_(dnn_, compute_capability(index)) {}

std::string CudaDevice::name() const { return fmt::format("cuda:{}", index_); }

Environment CudaDevice::environment() const {
  enter();
  return read_environment(index_);
}

void CudaDevice::enter() const {
  if (!unusable_.empty()) {
    throw Error(ErrorKind::kEnvironment,
                fmt::format("{} is unusable since {}; start a new process to use it again", name(),
                            unusable_));
  }
  check(cudaSetDevice(index_), "cudaSetDevice");
}

void CudaDevice::mark_unusable(std::string sentence) {
  cudaGetLastError();
  unusable_ = std::move(sentence);
  throw Error(ErrorKind::kEnvironment, fmt::format("{}: {}", name(), unusable_));
}

template <typename Status>
void CudaDevice::expect_launched(Status status, std::string_view what) {
  if (succeeded(status)) return;
  if (is_recoverable(status)) check(status, what);
  mark_unusable(sentence(what, status));
}

template <typename Call>
void CudaDevice::launch_kernel(const Call& call, std::string_view what) {
  enter();
  expect_launched(launch(call, stream_.get()), what);
}

// cuDNN's status comes as an Error; a prepared call can still be rejected or fail in its launch.
template <typename Work>
void CudaDevice::run_cudnn(Work work) {
  try {
    work();
  } catch (const cudnn::StatusError& error) {
    if (cudnn::is_recoverable(error.status())) throw;
    mark_unusable(error.what());
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::kOutOfMemory) throw;
    mark_unusable(error.what());
  }
}

void CudaDevice::synchronize() {
  enter();
  expect_launched(cudaStreamSynchronize(stream_.get()), "cudaStreamSynchronize");
}

void CudaDevice::run(const ElementwiseCall& call) {
  for (const Operand* operand : {&call.out, &call.a, &call.b, &call.c}) {
    if (*operand && is_complex(operand->dtype) && !has_complex_form(call.op)) {
      throw Error(ErrorKind::kInternal,
                  "a complex operand in an element-wise operation that has no complex form");
    }
  }
  launch_kernel(call, "the launch of an element-wise kernel");
}

void CudaDevice::run(const ReduceCall& call) { launch_kernel(call, "the launch of a reduction"); }
void CudaDevice::run(const SoftmaxCall& call) { launch_kernel(call, "the launch of a softmax"); }
void CudaDevice::run(const NormCall& call) { launch_kernel(call, "the launch of a norm"); }
void CudaDevice::run(const NllCall& call) { launch_kernel(call, "the launch of a loss"); }
void CudaDevice::run(const DropoutCall& call) { launch_kernel(call, "the launch of a dropout"); }
void CudaDevice::run(const PoolCall& call) { launch_kernel(call, "the launch of a pooling"); }
void CudaDevice::run(const UpsampleCall& call) {
  launch_kernel(call, "the launch of an upsampling");
}
void CudaDevice::run(const EmbeddingCall& call) {
  launch_kernel(call, "the launch of an embedding");
}
void CudaDevice::run(const OptimizerCall& call) {
  launch_kernel(call, "the launch of an optimizer step");
}

void CudaDevice::run(const AttentionCall& call) {
  enter();
  if (attention_.takes(call)) {
    bool done = false;
    run_cudnn([&] { done = attention_.run(call); });
    if (done) return;
  }
  if (call.q.shape[3] > kMaxSupportedHeadSize) {
    throw Error(ErrorKind::kInput,
                fmt::format("attention on {}: a head has {} features; at most {} are supported",
                            name(), call.q.shape[3], kMaxSupportedHeadSize));
  }
  launch_kernel(call, "the launch of an attention");
}

void CudaDevice::run(const GemmCall& call) {
  enter();
  if (call.out.shape.elements() == 0) return;
  if (!is_blas_compatible(call)) return launch_kernel(call, "the launch of a strided product");
  const GemmLayout layout = layout_of(call);
  switch (Gemm::bias_path(call, layout)) {
    case BiasPath::kNone:
      return expect_launched(gemm_.run(call, layout, call.beta), "a matrix product");
    case BiasPath::kEpilogue:
      if (const cublasStatus_t status = gemm_.run_with_bias(call, layout);
          status != CUBLAS_STATUS_NOT_SUPPORTED)
        return expect_launched(status, "a matrix product with bias");
      break;
    case BiasPath::kBefore: break;
  }
  // beta is applied together with the bias, to the old output; the product is added to both.
  ElementwiseCall bias{.op = Elementwise::kCopy, .out = call.out, .a = call.bias, .b = {}, .c = {}};
  if (call.beta != 0) {
    bias.op = Elementwise::kAdd;
    bias.b = call.out;
    bias.scalars[0] = call.beta;
  }
  run(bias);
  expect_launched(gemm_.run(call, layout, 1), "a matrix product");
}

void CudaDevice::run(const FftCall& call) {
  enter();
  if (call.out.shape.elements() == 0) return;
  expect_launched(fft_.run(call), "a Fourier transform");
  if (call.scale == 1) return;
  run(ElementwiseCall{.op = Elementwise::kMulScalar,
                      .out = call.out,
                      .a = call.out,
                      .b = {},
                      .c = {},
                      .scalars = {call.scale}});
}

void CudaDevice::run(const ConvolutionCall& call) {
  enter();
  convolutions_.prepare(call);
  run_cudnn([&] { convolutions_.run(call); });
}

void CudaDevice::set_gemm_workspace(Operand workspace) {
  enter();
  gemm_.set_workspace(workspace.data,
                      workspace ? count_of(size_of(workspace.shape, workspace.dtype)) : 0);
}

void CudaDevice::copy_from_host(void* device, const void* host, Bytes bytes) {
  enter();
  expect_launched(
      cudaMemcpyAsync(device, host, count_of(bytes), cudaMemcpyHostToDevice, stream_.get()),
      "a copy to the device");
  expect_launched(cudaStreamSynchronize(stream_.get()), "a copy to the device");
}

void CudaDevice::copy_to_host(void* host, const void* device, Bytes bytes) {
  enter();
  expect_launched(
      cudaMemcpyAsync(host, device, count_of(bytes), cudaMemcpyDeviceToHost, stream_.get()),
      "a copy from the device");
  expect_launched(cudaStreamSynchronize(stream_.get()), "a copy from the device");
}

WorkspaceSize CudaDevice::Workspaces::convolution(const ConvolutionQuery& query) const {
  device_.enter();
  return {device_.convolutions_.workspace(query), Source::kMeasured};
}

WorkspaceSize CudaDevice::Workspaces::fft(const FftQuery& query) const {
  device_.enter();
  return {Bytes{static_cast<std::int64_t>(device_.fft_.workspace(query))}, Source::kMeasured};
}

WorkspaceSize CudaDevice::Workspaces::attention(const AttentionQuery& query) const {
  device_.enter();
  const std::optional<Bytes> bytes = device_.attention_.workspace(query);
  return bytes ? WorkspaceSize{*bytes, Source::kMeasured} : WorkspaceSize{};
}

}  // namespace memfathom::cuda

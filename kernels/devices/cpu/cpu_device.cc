#include "kernels/devices/cpu/cpu_device.h"

#include <cstring>

#include "kernels/devices/cpu/attention.h"
#include "kernels/devices/cpu/gemm.h"
#include "kernels/devices/cpu/host.h"
#include "kernels/devices/cpu/loops.h"
#include "kernels/devices/reference/reference.h"

namespace memfathom {

CpuDevice::CpuDevice() : CpuDevice(cpu::usable_memory()) {}
CpuDevice::CpuDevice(Bytes capacity) : memory_(capacity) {}

Environment CpuDevice::environment() const { return cpu::host_environment(); }

WorkspaceSize CpuDevice::Workspaces::convolution(const ConvolutionQuery& query) const {
  return {convolutions_.workspace(query), Source::kExact};
}
WorkspaceSize CpuDevice::Workspaces::fft(const FftQuery& query) const {
  return {cpu::Transforms::workspace(query), Source::kExact};
}

void CpuDevice::run(const ElementwiseCall& call) { cpu::run_loops(call); }
void CpuDevice::run(const ReduceCall& call) { cpu::run_loops(call); }
void CpuDevice::run(const SoftmaxCall& call) {
  if (!softmaxes_.run(call)) cpu::run_loops(call);
}
void CpuDevice::run(const NormCall& call) { cpu::run_loops(call); }
void CpuDevice::run(const NllCall& call) { run_reference(call); }
void CpuDevice::run(const DropoutCall& call) { run_reference(call); }
void CpuDevice::run(const GemmCall& call) { cpu::run_gemm(call); }
void CpuDevice::run(const ConvolutionCall& call) { convolutions_.run(call); }
void CpuDevice::run(const PoolCall& call) { cpu::run_loops(call); }
void CpuDevice::run(const UpsampleCall& call) { cpu::run_loops(call); }
void CpuDevice::run(const FftCall& call) { transforms_.run(call); }
void CpuDevice::run(const AttentionCall& call) { cpu::run_attention(call); }
void CpuDevice::run(const EmbeddingCall& call) { run_reference(call); }
void CpuDevice::run(const OptimizerCall& call) { cpu::run_loops(call); }

void CpuDevice::copy_from_host(void* device, const void* host, Bytes bytes) {
  std::memcpy(device, host, static_cast<std::size_t>(bytes.count()));
}
void CpuDevice::copy_to_host(void* host, const void* device, Bytes bytes) {
  std::memcpy(host, device, static_cast<std::size_t>(bytes.count()));
}

}  // namespace memfathom

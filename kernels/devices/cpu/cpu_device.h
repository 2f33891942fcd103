// CpuDevice: the cpu as a device: products, convolutions and transforms of oneDNN and FFTW
// (libraries/) or our own (portable/), and loops, over mmap segments that are resident when mapped.
//
// Calls are complete when run() returns. 16-bit operands are only storage: arithmetic is in fp32.
// The caller provides the workspaces of convolutions and transforms (workspaces()); matrix products
// and attention on 16-bit operands allocate their own fp32 scratch and free it before the call
// returns.
#pragma once

#include "kernels/devices/cpu/convolutions.h"
#include "kernels/devices/cpu/dense_softmax.h"
#include "kernels/devices/cpu/transforms.h"
#include "kernels/framework/device/device.h"
#include "kernels/memory/allocator/mmap_segments.h"

namespace memfathom {

class CpuDevice final : public Device {
 public:
  // Memory is limited to `capacity`, or to what the machine can provide without invoking the OOM
  // killer.
  CpuDevice();
  explicit CpuDevice(Bytes capacity);

  std::string name() const override { return "cpu"; }
  Environment environment() const override;
  SegmentSource& memory() override { return memory_; }
  bool computes() const override { return true; }
  void synchronize() override {}

  const WorkspaceModel& workspaces() const override { return workspaces_; }

  void run(const ElementwiseCall& call) override;
  void run(const ReduceCall& call) override;
  void run(const SoftmaxCall& call) override;
  void run(const NormCall& call) override;
  void run(const NllCall& call) override;
  void run(const DropoutCall& call) override;
  void run(const GemmCall& call) override;
  void run(const ConvolutionCall& call) override;
  void run(const PoolCall& call) override;
  void run(const UpsampleCall& call) override;
  void run(const FftCall& call) override;
  void run(const AttentionCall& call) override;
  void run(const EmbeddingCall& call) override;
  void run(const OptimizerCall& call) override;

  void set_gemm_workspace(Operand) override {}
  void copy_from_host(void* device, const void* host, Bytes bytes) override;
  void copy_to_host(void* host, const void* device, Bytes bytes) override;

 private:
  // Of convolutions and transforms; attention allocates its own scratch.
  class Workspaces final : public WorkspaceModel {
   public:
    explicit Workspaces(cpu::Convolutions& convolutions) : convolutions_(convolutions) {}
    WorkspaceSize convolution(const ConvolutionQuery& query) const override;
    WorkspaceSize fft(const FftQuery& query) const override;
    WorkspaceSize attention(const AttentionQuery&) const override { return {}; }

   private:
    cpu::Convolutions& convolutions_;  // a query creates a primitive and caches it
  };

  MmapSegments memory_;
  cpu::Convolutions convolutions_;
  cpu::Transforms transforms_;
  cpu::DenseSoftmax softmaxes_;
  Workspaces workspaces_{convolutions_};
};

}  // namespace memfathom

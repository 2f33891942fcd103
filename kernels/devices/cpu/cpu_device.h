// CpuDevice: the cpu as a device: oneDNN, FFTW and loops over mmap segments that are resident when
// mapped.
//
// Calls are done when run() returns. 16-bit operands are storage: they are computed in fp32. What
// oneDNN and FFTW need beyond operands comes from the caller as a workspace (workspaces());
// matrix products and attention on 16-bit operands use fp32 scratch of their own, freed when the
// call returns.
#pragma once

#include "kernels/devices/cpu/convolution.h"
#include "kernels/devices/cpu/fft.h"
#include "kernels/devices/cpu/softmax_onednn.h"
#include "kernels/framework/device/device.h"
#include "kernels/memory/allocator/mmap_segments.h"

namespace memfathom {

class CpuDevice final : public Device {
 public:
  // Memory is limited to what the machine can give without killing somebody; or to `capacity`.
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
  // What oneDNN and FFTW ask for; attention has scratch memory of its own.
  class Workspaces final : public WorkspaceModel {
   public:
    explicit Workspaces(cpu::OnednnConvolutions& convolutions) : convolutions_(convolutions) {}
    WorkspaceSize convolution(const ConvolutionQuery& query) const override;
    WorkspaceSize fft(const FftQuery& query) const override;
    WorkspaceSize attention(const AttentionQuery&) const override { return {}; }

   private:
    cpu::OnednnConvolutions& convolutions_;  // answering a query makes a primitive and keeps it
  };

  MmapSegments memory_;
  cpu::OnednnConvolutions convolutions_;
  cpu::FftwTransforms transforms_;
  cpu::OnednnSoftmax softmaxes_;
  Workspaces workspaces_{convolutions_};
};

}  // namespace memfathom

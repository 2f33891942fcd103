// CudaDevice: a GPU as a Device. Library calls are checked, our own kernels use launch.h, and all
// run on one stream.
#pragma once

#include <string>
#include <string_view>

#include "kernels/devices/cuda/attention.h"
#include "kernels/devices/cuda/convolution.h"
#include "kernels/devices/cuda/cudnn_context.h"
#include "kernels/devices/cuda/fft.h"
#include "kernels/devices/cuda/gemm.h"
#include "kernels/devices/cuda/handles.h"
#include "kernels/devices/cuda/segments.h"
#include "kernels/framework/device/device.h"

namespace memfathom::cuda {

// The device stays usable if creating a handle, a plan or a stream fails (Error(kEnvironment); the
// next call tries again), if a library rejects a call, or if a call's code or tables do not fit in
// memory (Error(kOutOfMemory)). Any other failed launch, copy or synchronization leaves memory in
// an unknown state and makes the device unusable.
class CudaDevice final : public Device {
 public:
  explicit CudaDevice(int index);

  std::string name() const override;
  Environment environment() const override;
  SegmentSource& memory() override { return segments_; }
  bool computes() const override { return true; }
  void synchronize() override;
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

  void set_gemm_workspace(Operand workspace) override;
  void copy_from_host(void* device, const void* host, Bytes bytes) override;
  void copy_to_host(void* host, const void* device, Bytes bytes) override;

 private:
  // The workspaces of this device's libraries. A query creates a plan and caches it.
  class Workspaces final : public WorkspaceModel {
   public:
    explicit Workspaces(CudaDevice& device) : device_(device) {}
    WorkspaceSize convolution(const ConvolutionQuery& query) const override;
    WorkspaceSize fft(const FftQuery& query) const override;
    WorkspaceSize attention(const AttentionQuery& query) const override;

   private:
    CudaDevice& device_;
  };

  // Makes the device current for this thread; throws if it is unusable.
  void enter() const;
  [[noreturn]] void mark_unusable(std::string sentence);
  template <typename Status>
  void expect_launched(Status status, std::string_view what);
  template <typename Work>
  void run_cudnn(Work work);
  template <typename Call>
  void launch_kernel(const Call& call, std::string_view what);

  int index_;
  std::string unusable_;  // the reason, once it is unusable
  CudaSegments segments_;
  Stream stream_;
  Gemm gemm_;
  Fft fft_;
  CudnnContext dnn_;
  CudnnConvolutions convolutions_;
  FusedAttention attention_;
  Workspaces workspaces_{*this};
};

}  // namespace memfathom::cuda

// ReferenceDevice: the reference loops as a device, for comparisons of whole layers.
#pragma once

#include <cstring>

#include "kernels/devices/reference/reference.h"
#include "kernels/framework/device/device.h"
#include "kernels/memory/allocator/mmap_segments.h"

namespace memfathom::selftest {

// Slow, in host memory, without workspaces.
class ReferenceDevice final : public Device {
 public:
  std::string name() const override { return "reference"; }
  Environment environment() const override { return {}; }
  SegmentSource& memory() override { return memory_; }
  bool computes() const override { return true; }
  void synchronize() override {}

  const WorkspaceModel& workspaces() const override { return workspaces_; }

  void run(const ElementwiseCall& call) override { run_reference(call); }
  void run(const ReduceCall& call) override { run_reference(call); }
  void run(const SoftmaxCall& call) override { run_reference(call); }
  void run(const NormCall& call) override { run_reference(call); }
  void run(const NllCall& call) override { run_reference(call); }
  void run(const DropoutCall& call) override { run_reference(call); }
  void run(const GemmCall& call) override { run_reference(call); }
  void run(const ConvolutionCall& call) override { run_reference(call); }
  void run(const PoolCall& call) override { run_reference(call); }
  void run(const UpsampleCall& call) override { run_reference(call); }
  void run(const FftCall& call) override { run_reference(call); }
  void run(const AttentionCall& call) override { run_reference(call); }
  void run(const EmbeddingCall& call) override { run_reference(call); }
  void run(const OptimizerCall& call) override { run_reference(call); }

  void set_gemm_workspace(Operand) override {}
  void copy_from_host(void* device, const void* host, Bytes bytes) override {
    std::memcpy(device, host, static_cast<std::size_t>(bytes.count()));
  }
  void copy_to_host(void* host, const void* device, Bytes bytes) override {
    std::memcpy(host, device, static_cast<std::size_t>(bytes.count()));
  }

 private:
  MmapSegments memory_;
  NoWorkspaces workspaces_;
};

}  // namespace memfathom::selftest

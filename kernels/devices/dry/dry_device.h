// DryDevice: accounts for memory and computes nothing; models of any size run in milliseconds.
#pragma once

#include "kernels/framework/device/device.h"
#include "kernels/memory/allocator/arithmetic_segments.h"

namespace memfathom {

// It has no workspaces of its own: the Session gets a model of the libraries' workspaces.
class DryDevice final : public Device {
 public:
  std::string name() const override { return "dry"; }
  Environment environment() const override;
  SegmentSource& memory() override { return segments_; }
  bool computes() const override { return false; }
  void synchronize() override {}

  const WorkspaceModel& workspaces() const override { return workspaces_; }

  void run(const ElementwiseCall&) override {}
  void run(const ReduceCall&) override {}
  void run(const SoftmaxCall&) override {}
  void run(const NormCall&) override {}
  void run(const NllCall&) override {}
  void run(const DropoutCall&) override {}
  void run(const GemmCall&) override {}
  void run(const ConvolutionCall&) override {}
  void run(const PoolCall&) override {}
  void run(const UpsampleCall&) override {}
  void run(const FftCall&) override {}
  void run(const AttentionCall&) override {}
  void run(const EmbeddingCall&) override {}
  void run(const OptimizerCall&) override {}
  void set_gemm_workspace(Operand) override {}
  void copy_from_host(void*, const void*, Bytes) override {}
  void copy_to_host(void*, const void*, Bytes) override {}

 private:
  ArithmeticSegments segments_;
  NoWorkspaces workspaces_;
};

}  // namespace memfathom

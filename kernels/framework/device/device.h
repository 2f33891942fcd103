// Device: executes calls and provides memory. One implementation per kind: cpu, cuda, dry.
//
// One thread at a time may use a device. Calls are asynchronous; synchronize() waits and reports
// errors. After a failed launch the device is unusable: every further call throws
// Error(kEnvironment).
#pragma once

#include <string>

#include "core/environment.h"
#include "core/workspace.h"
#include "kernels/framework/device/calls.h"
#include "kernels/memory/allocator/segment_source.h"

namespace memfathom {

class Device {
 public:
  virtual ~Device() = default;

  // "cpu", "cuda:0", "dry".
  virtual std::string name() const = 0;
  virtual Environment environment() const = 0;
  virtual SegmentSource& memory() = 0;
  // False for dry: buffers have addresses but no contents, and calls can be skipped.
  virtual bool computes() const = 0;
  virtual void synchronize() = 0;
  // The workspaces the device's libraries request. Call it from the thread that uses the device.
  virtual const WorkspaceModel& workspaces() const = 0;

  virtual void run(const ElementwiseCall& call) = 0;
  virtual void run(const ReduceCall& call) = 0;
  virtual void run(const SoftmaxCall& call) = 0;
  virtual void run(const NormCall& call) = 0;
  virtual void run(const NllCall& call) = 0;
  virtual void run(const DropoutCall& call) = 0;
  virtual void run(const GemmCall& call) = 0;
  virtual void run(const ConvolutionCall& call) = 0;
  virtual void run(const PoolCall& call) = 0;
  virtual void run(const UpsampleCall& call) = 0;
  virtual void run(const FftCall& call) = 0;
  virtual void run(const AttentionCall& call) = 0;
  virtual void run(const EmbeddingCall& call) = 0;
  virtual void run(const OptimizerCall& call) = 0;

  // cuBLAS: the caller provides the workspace (in PyTorch's sizes) before a thread's first gemm.
  // Devices without cuBLAS ignore it.
  virtual void set_gemm_workspace(Operand workspace) = 0;

  // Host <-> device, contiguous bytes; synchronous.
  virtual void copy_from_host(void* device, const void* host, Bytes bytes) = 0;
  virtual void copy_to_host(void* host, const void* device, Bytes bytes) = 0;
};

}  // namespace memfathom

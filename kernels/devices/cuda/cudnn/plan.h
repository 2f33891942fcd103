// Planning: which engines cuDNN's heuristics choose for a graph on a device, and the workspace each
// wants.
//
// Planning always goes through a device-property descriptor and never through a handle, so the same
// code plans for a GPU that is present and for one that is only described.
//
// What is imitated is PyTorch 2.x (aten/src/ATen/native/cudnn/Conv_v8.cpp): with benchmark off it
// asks heuristic mode INSTANT (A's other name; mode B only with
// TORCH_CUDNN_USE_HEURISTIC_MODE_B=1), drops engines whose numerical notes say DOWN_CONVERT_INPUTS
// always, NONDETERMINISTIC if determinism was asked for, and TENSOR_CORE for fp32 tensors if TF32
// is not allowed (it is by default, for convolutions), and runs the first that builds and whose
// workspace can be allocated; only then comes the fallback list. No limit on the workspace exists
// on that path. With benchmark on it builds both lists, keeps the plans whose workspace fits in the
// largest free block and allocates the largest of these workspaces.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/bytes.h"
#include "kernels/devices/cuda/cudnn/graph.h"

namespace memfathom::cudnn {

class DeviceProperties {
 public:
  // From cuDNN's JSON text of a device: no GPU needed (kernels/workspaces/architectures.h makes
  // such texts).
  static DeviceProperties from_json(std::string_view json);
  // Of the device a handle was made for.
  static DeviceProperties from_handle(cudnnHandle_t handle);

  const Descriptor& descriptor() const { return descriptor_; }

 private:
  explicit DeviceProperties(Descriptor descriptor) : descriptor_(std::move(descriptor)) {}
  Descriptor descriptor_;
};

struct PlanOptions {
  bool allow_tf32 = true;
  bool deterministic = false;
};

struct Engine {
  Descriptor configuration;
  Bytes workspace;
};

// The first engine PyTorch would try. Throws Error(kEnvironment) when no engine takes the graph on
// this device.
Engine first_engine(const Graph& graph, const DeviceProperties& device,
                    const PlanOptions& options = {});

// Every engine of mode A, then of the fallback list, in order: what benchmark mode tries.
std::vector<Engine> all_engines(const Graph& graph, const DeviceProperties& device,
                                const PlanOptions& options = {});

// The largest workspace among them: what benchmark mode allocates where memory is no obstacle.
Bytes largest_workspace(const std::vector<Engine>& engines);

// A finalized execution plan: may compile code. It is what execute() runs.
class ExecutionPlan {
 public:
  ExecutionPlan(const Engine& engine, const DeviceProperties& device);
  const Descriptor& descriptor() const { return descriptor_; }
  Bytes workspace() const;

 private:
  Descriptor descriptor_;
};

// cudnnGetVersion() as text, "9.19.0".
std::string version();

}  // namespace memfathom::cudnn

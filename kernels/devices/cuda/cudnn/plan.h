// Planning: the engines that cuDNN's heuristics choose for a graph on a device, and their
// workspaces.
//
// Planning never uses a handle: cuDNN plans for the current device or, given a device-property
// descriptor, for the described one. NVIDIA documents plans made with a descriptor as something to
// serialise and to load where they run, so plans that are executed are made without one.
//
// It imitates PyTorch 2.x (aten/src/ATen/native/cudnn/Conv_v8.cpp). Without benchmark mode PyTorch
// queries heuristic mode INSTANT (an alias of A; mode B only with
// TORCH_CUDNN_USE_HEURISTIC_MODE_B=1) and drops engines with the numerical notes
// DOWN_CONVERT_INPUTS always, NONDETERMINISTIC if determinism is requested, and TENSOR_CORE for
// fp32 tensors if TF32 is disabled (convolutions enable it by default). It runs the first engine
// that builds and whose workspace can be allocated, then tries the fallback list; the workspace has
// no limit. With benchmark mode it builds both lists, keeps the plans whose workspace fits in the
// largest free block and allocates the largest of these workspaces.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/bytes.h"
#include "kernels/devices/cuda/cudnn/graph.h"

namespace memfathom::cudnn {

class DeviceProperties {
 public:
  // From cuDNN's JSON description of a device, without a GPU (kernels/workspaces/architectures.h
  // creates these texts).
  static DeviceProperties from_json(std::string_view json);
  // The device that is current where a plan is made.
  static DeviceProperties current() { return DeviceProperties(std::nullopt); }

  // Null for the current device.
  const Descriptor* descriptor() const { return descriptor_ ? &*descriptor_ : nullptr; }

 private:
  explicit DeviceProperties(std::optional<Descriptor> descriptor)
      : descriptor_(std::move(descriptor)) {}
  std::optional<Descriptor> descriptor_;
};

struct PlanOptions {
  bool allow_tf32 = true;
  bool deterministic = false;
};

struct Engine {
  Descriptor configuration;
  Bytes workspace;
};

// The first engine PyTorch would try. Throws Error(kEnvironment) if no engine supports the graph on
// this device.
Engine first_engine(const Graph& graph, const DeviceProperties& device,
                    const PlanOptions& options = {});

// Every engine of mode A, then of the fallback list, in order: the candidates of benchmark mode.
std::vector<Engine> all_engines(const Graph& graph, const DeviceProperties& device,
                                const PlanOptions& options = {});

// The largest workspace among them: what benchmark mode allocates if memory suffices.
Bytes largest_workspace(const std::vector<Engine>& engines);

// A finalized execution plan for execute(); creating it may compile code.
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

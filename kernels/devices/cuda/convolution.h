// CudnnConvolutions: convolutions planned by cuDNN's heuristics or, in benchmark mode, by trying
// all engines; caches plans.
#pragma once

#include <optional>
#include <vector>

#include "core/workspace.h"
#include "kernels/devices/cuda/cudnn/graph.h"
#include "kernels/devices/cuda/cudnn/plan.h"
#include "kernels/devices/cuda/cudnn_context.h"
#include "kernels/devices/cuda/plan_cache.h"
#include "kernels/framework/device/calls.h"

namespace memfathom::cuda {

// Not thread-safe.
class CudnnConvolutions {
 public:
  // PyTorch keeps up to 10000 plans; each may hold code of its own on the device.
  explicit CudnnConvolutions(CudnnContext& dnn, std::size_t plans = 1000)
      : dnn_(dnn), plans_(plans) {}

  // The required workspace: the first choice's or, until benchmark mode has chosen, the largest
  // that fits in the device's free memory.
  Bytes workspace(const ConvolutionQuery& query);
  // Throws Error(kInternal) for operands that do not match the query, before any launch. The second
  // step launches; if cuDNN rejects the engine only then, the next one that fits in the workspace
  // is used. After any other failure the device is unusable.
  void prepare(const ConvolutionCall& call);
  void run(const ConvolutionCall& call);

 private:
  struct Candidate {
    cudnn::ExecutionPlan plan;
    Bytes workspace;
    std::size_t place = 0;  // in the list of all choices
  };
  struct Planned {
    cudnn::Graph graph;
    std::vector<Candidate> candidates;  // one, unless benchmark mode has not chosen yet
  };

  // The plans for dense tensors at the start of a block, or for a call's own tensors; engines for
  // views at other offsets are limited to the workspace of the call.
  Planned& planned(const ConvolutionQuery& query);
  Planned& planned(const ConvolutionCall& call);
  Planned make_plans(const ConvolutionQuery& query,
                     const cudnn::Convolution::Alignment& alignment = {},
                     std::optional<Bytes> limit = std::nullopt);
  void execute(const ConvolutionCall& call, const Candidate& candidate);
  float time_of(const ConvolutionCall& call, const Candidate& candidate);
  void choose_fastest(const ConvolutionCall& call, Planned& plans);
  bool run_next_engine(const ConvolutionCall& call, Planned& plans);

  CudnnContext& dnn_;
  PlanCache<Planned> plans_;
};

}  // namespace memfathom::cuda

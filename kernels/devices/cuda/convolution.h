// CudnnConvolutions: planned by cuDNN's heuristics for this device, or by trying them all; plans
// are kept.
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

// Not for two threads at once.
class CudnnConvolutions {
 public:
  // PyTorch keeps up to 10000 plans; each may hold code of its own on the device.
  explicit CudnnConvolutions(CudnnContext& dnn, std::size_t plans = 1000)
      : dnn_(dnn), plans_(plans) {}

  // What the caller has to bring: the first choice's workspace, or, while benchmark mode has not
  // chosen yet, the largest that fits in the device's free memory.
  Bytes workspace(const ConvolutionQuery& query);
  // Throws Error(kInternal) for operands that do not go with the query, before anything is
  // launched. The second step launches; where cuDNN refuses the engine only then, the next one that
  // fits in the workspace takes its place. After any other failure the device is not to be used.
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
    std::vector<Candidate> candidates;  // one, unless benchmark mode has yet to choose
  };

  // The plans for dense tensors at the start of a block, or for those of a call; engines for views
  // that begin elsewhere have to do with the workspace the call brings.
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

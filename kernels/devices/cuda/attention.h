// FusedAttention: attention on cuDNN's fused engines if they support the device, type and shape;
// caches plans.
#pragma once

#include <optional>

#include "core/workspace.h"
#include "kernels/devices/cuda/cudnn/plan.h"
#include "kernels/devices/cuda/cudnn_context.h"
#include "kernels/devices/cuda/plan_cache.h"
#include "kernels/framework/device/calls.h"

namespace memfathom::cuda {

// Not thread-safe.
class FusedAttention {
 public:
  // `compute_capability`: 90 is 9.0; some of cuDNN's errors are those of one architecture.
  FusedAttention(CudnnContext& dnn, int compute_capability, std::size_t plans = 1000)
      : dnn_(dnn), compute_capability_(compute_capability), plans_(plans) {}

  // The required workspace; nullopt if no engine supports the call and our own kernels run it.
  std::optional<Bytes> workspace(const AttentionQuery& query);
  // Whether run() can run the call with the workspace it has. Launches nothing.
  bool takes(const AttentionCall& call);
  // False if cuDNN rejects the call: nothing ran, and it is not tried again. After any other
  // failure the device is unusable.
  bool run(const AttentionCall& call);

 private:
  struct Planned {
    std::optional<cudnn::ExecutionPlan> plan;  // none: no engine
    Bytes workspace;                           // cuDNN's own, then the graph's scratch
  };
  Planned& planned(const AttentionQuery& query);
  Planned make_plan(const AttentionQuery& query);

  CudnnContext& dnn_;
  int compute_capability_;
  PlanCache<Planned> plans_;
};

}  // namespace memfathom::cuda

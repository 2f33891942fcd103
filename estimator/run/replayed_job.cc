#include "estimator/run/replayed_job.h"

namespace memfathom {

ReplayedJob replayed(const DryRun& run) {
  ReplayedJob job;
  job.allocated_peak = run.allocated_peak;
  job.reserved_peak = run.reserved_peak;
  job.uses_cublas = run.uses_cublas;
  job.uses_cudnn = run.uses_cudnn;
  job.uses_cufft = run.uses_cufft;
  job.layers = run.layers;
  const auto sum = [&](std::initializer_list<Component> components) {
    Bytes total;
    for (const ComponentBytes& module : run.at_peak) {
      for (const Component c : components) total += Bytes{module[static_cast<std::size_t>(c)]};
    }
    return total;
  };
  job.states = sum({Component::kParameters, Component::kAdapterParameters, Component::kBuffers,
                    Component::kGradients, Component::kOptimizerState});
  job.activations = sum({Component::kActivations, Component::kKvCache, Component::kInputs});
  job.temporaries = sum({Component::kTemporaries});
  job.logits = sum({Component::kLogitsLoss});
  job.workspaces =
      sum({Component::kWorkspaceCublas, Component::kWorkspaceCudnn, Component::kWorkspaceCufft});
  return job;
}

}  // namespace memfathom

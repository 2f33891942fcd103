#include "estimator/job_model/layer_benchmark.h"

namespace memfathom {
bool is_layer_benchmark(const Job& job) {
  if (job.training.mode != Mode::kTrain || job.training.optimizer.name != OptimizerName::kNone ||
      job.allocator.backend != Backend::kCaching) {
    return false;
  }
  const LayerStack* layers = job.model.layers();
  return layers != nullptr && layers->input_wants_gradient();
}

bool retains_graph(const Job& job) {
  return job.training.retain_graph.value_or(is_layer_benchmark(job));
}

bool is_norm_only_benchmark(const Job& job) {
  return is_layer_benchmark(job) && is_16bit_float(job.training.precision.parameters) &&
         job.model.layers()->has_only_norms();
}

void note_benchmark(const Job& job, std::vector<std::string>& assumptions) {
  if (!is_layer_benchmark(job)) return;
  if (!job.training.retain_graph) {
    assumptions.emplace_back(
        "the input requires a gradient and nothing is trainable: treated as a layer benchmark that "
        "keeps the graph after backward; set training.retain_graph: false to free it");
  }
  if (is_norm_only_benchmark(job)) {
    assumptions.emplace_back("norms alone: their weights are fp32, as modules are made");
  }
}

}  // namespace memfathom

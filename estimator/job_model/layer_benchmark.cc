#include "estimator/job_model/layer_benchmark.h"

#include <algorithm>
#include <array>
#include <string_view>

namespace memfathom {
namespace {

bool is_norm(const Node& layer) {
  static constexpr std::array<std::string_view, 5> kNorms{"layer_norm", "rms_norm", "group_norm",
                                                          "batch_norm", "instance_norm"};
  const Node* type = layer.find("type");
  return type != nullptr && type->is_string() &&
         std::find(kNorms.begin(), kNorms.end(), type->as_string()) != kNorms.end();
}

}  // namespace

bool is_layer_benchmark(const Job& job) {
  if (job.training.mode != Mode::kTrain || job.training.optimizer.name != OptimizerName::kNone ||
      job.allocator.backend != Backend::kCaching) {
    return false;
  }
  const Node* input = job.model.find("layers") != nullptr ? job.model.find("input") : nullptr;
  if (input == nullptr || !input->is_map()) return false;
  const Node* wanted = input->find("requires_grad");
  const Node* source = input->find("source");
  const bool is_leaf = source == nullptr || source->as_string() == "batch";
  return wanted != nullptr && wanted->as_bool() && is_leaf;
}

bool retains_graph(const Job& job) {
  return job.training.retain_graph.value_or(is_layer_benchmark(job));
}

bool is_norm_only_benchmark(const Job& job) {
  if (!is_layer_benchmark(job) || !is_16bit_float(job.training.precision.parameters)) return false;
  const std::vector<Node>& layers = job.model.at("layers").items();
  return !layers.empty() && std::all_of(layers.begin(), layers.end(), is_norm);
}

void note_benchmark(const Job& job, std::vector<std::string>& assumptions) {
  if (!is_layer_benchmark(job)) return;
  if (!job.training.retain_graph) {
    assumptions.emplace_back(
        "the input wants a gradient and nothing learns: read as a benchmark of layers, whose "
        "backward keeps the graph; training.retain_graph: false frees it");
  }
  if (is_norm_only_benchmark(job)) {
    assumptions.emplace_back("norms alone: their weights are fp32, as modules are made");
  }
}

}  // namespace memfathom

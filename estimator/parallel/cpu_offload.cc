#include "estimator/parallel/cpu_offload.h"

#include <algorithm>

namespace memfathom {
namespace {

// "blocks.3.attn.to_q" of "blocks.3.attn.to_q.weight"
std::string layer_of(const std::string& name) { return name.substr(0, name.rfind('.')); }

}  // namespace

void HostedWeights::adopt(const std::vector<NamedTensor>& parameters, bool all) {
  std::string layer;
  for (const NamedTensor& parameter : parameters) {
    const Tensor& weight = parameter.tensor;
    Storage& storage = *weight.impl()->storage;
    if (weight.requires_grad() && !all) {
      if (!storage.resident()) storage.restore_memory();
      continue;
    }
    if (unit_of_.count(&storage) != 0) continue;  // tied to another
    if (units_.empty() || layer_of(parameter.name) != layer) {
      units_.push_back({{}, parameter.block});
      layer = layer_of(parameter.name);
    }
    units_.back().weights.push_back(weight);
    unit_of_[&storage] = units_.size() - 1;
    storage.set_storage_observer(this);
    const ComponentScope scope(host_, Component::kParameters);
    copies_.push_back(host_.empty(weight.shape(), weight.dtype()));
  }
}

// A layer's output may need its weight for the gradient of its input: the graph then holds the copy
// on the GPU until that backward is over. Under a checkpoint, and where no graph is made, it does
// not.
bool HostedWeights::is_saved(const Unit& unit, const Unit& used) const {
  if (device_.in_backward) return !unit.in_backward || unit.block == used.block;
  return device_.grad_enabled && device_.checkpoint == nullptr;
}

void HostedWeights::release_memory(Unit& unit) {
  for (const Tensor& weight : unit.weights) weight.impl()->storage->release_memory();
  unit.present = unit.in_backward = false;
}

void HostedWeights::before_use(Storage& storage) {
  const auto found = unit_of_.find(&storage);
  if (found == unit_of_.end()) return;
  Unit& unit = units_[found->second];
  unit.in_backward = device_.in_backward;
  if (unit.present) return;
  std::erase_if(present_, [&](std::size_t index) {
    Unit& other = units_[index];
    if (is_saved(other, unit)) return false;
    release_memory(other);
    return true;
  });
  for (const Tensor& weight : unit.weights) weight.impl()->storage->restore_memory();
  unit.present = true;
  present_.push_back(found->second);
}

void HostedWeights::release_all() {
  for (const std::size_t index : present_) release_memory(units_[index]);
  present_.clear();
}

}  // namespace memfathom

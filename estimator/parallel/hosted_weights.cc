#include "estimator/parallel/hosted_weights.h"

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
      if (!storage.resident()) storage.bring_back();
      continue;
    }
    if (unit_of_.count(&storage) != 0) continue;  // tied to another
    if (units_.empty() || layer_of(parameter.name) != layer) {
      units_.push_back({{}, parameter.block});
      layer = layer_of(parameter.name);
    }
    units_.back().weights.push_back(weight);
    unit_of_[&storage] = units_.size() - 1;
    storage.set_keeper(this);
    const ComponentScope scope(host_, Component::kParameters);
    copies_.push_back(host_.empty(weight.shape(), weight.dtype()));
  }
}

// A layer's output may need its weight for the gradient of its input: the graph then holds the copy
// on the card until that backward is over. Under a checkpoint, and where no graph is made, it does
// not.
bool HostedWeights::is_saved(const Unit& unit, const Unit& used) const {
  if (device_.in_backward) return !unit.in_backward || unit.block == used.block;
  return device_.grad_enabled && device_.checkpoint == nullptr;
}

void HostedWeights::let_go(Unit& unit) {
  for (const Tensor& weight : unit.weights) weight.impl()->storage->let_go();
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
    let_go(other);
    return true;
  });
  for (const Tensor& weight : unit.weights) weight.impl()->storage->bring_back();
  unit.present = true;
  present_.push_back(found->second);
}

void HostedWeights::release_all() {
  for (const std::size_t index : present_) let_go(units_[index]);
  present_.clear();
}

}  // namespace memfathom

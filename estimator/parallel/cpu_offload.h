// Hosted weights: frozen weights that lie on the host and come to the GPU when they are used:
// sequential CPU offload, as accelerate's hooks do it for each layer.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "kernels/framework/layers/builder.h"
#include "kernels/framework/tensor/session.h"
#include "kernels/framework/tensor/tensor.h"

namespace memfathom {

class HostedWeights final : public StorageObserver {
 public:
  HostedWeights(Session& device, Session& host) : device_(device), host_(host) {}

  // Keeps those that do not learn (`all`: every one) on the host; the others get their memory on
  // the device. They must have been built deferred.
  void adopt(const std::vector<NamedTensor>& parameters, bool all);
  // Between two iterations nothing is left on the GPU.
  void release_all();

  void before_use(Storage& storage) override;
  void gradient_ready(TensorImpl&) override {}

 private:
  struct Unit {
    std::vector<Tensor> weights;  // of one layer
    std::int64_t block = -1;
    bool present = false;
    bool in_backward = false;  // it was used there: nothing needs it once its block is over
  };

  // Whether the graph still holds what the unit's layer saved.
  bool is_saved(const Unit& unit, const Unit& used) const;
  void release_memory(Unit& unit);

  Session& device_;
  Session& host_;
  std::vector<Unit> units_;
  std::vector<std::size_t> present_;
  std::unordered_map<const Storage*, std::size_t> unit_of_;
  std::vector<Tensor> copies_;  // on the host
};

}  // namespace memfathom

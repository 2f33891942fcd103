// BatchScope: the time in which a new batch replaces the previous one on the device.
#pragma once

#include <initializer_list>

#include "kernels/framework/tensor/session.h"

namespace memfathom {

// Frees the previous batch first (see Network::load_batch). Tensors created in the scope count as
// input.
class BatchScope : ComponentScope {
 public:
  BatchScope(Session& session, std::initializer_list<Tensor*> before)
      : ComponentScope(session, Component::kInputs) {
    for (Tensor* tensor : before) tensor->reset();
  }
};

}  // namespace memfathom

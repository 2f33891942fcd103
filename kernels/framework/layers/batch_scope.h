// BatchScope: a batch being put on the device in place of the one before.
#pragma once

#include <initializer_list>

#include "kernels/framework/tensor/session.h"

namespace memfathom {

// The tensors of the batch before go first (see Network::load_batch); what is made in the scope is
// input.
class BatchScope : ComponentScope {
 public:
  BatchScope(Session& session, std::initializer_list<Tensor*> before)
      : ComponentScope(session, Component::kInputs) {
    for (Tensor* tensor : before) tensor->reset();
  }
};

}  // namespace memfathom

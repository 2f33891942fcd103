// OnednnSoftmax: softmax on oneDNN for dense fp32 rows, the common case; the loops compute the
// rest.
#pragma once

#include <memory>

#include "kernels/framework/device/calls.h"

namespace memfathom::cpu {

class OnednnSoftmax {
 public:
  OnednnSoftmax();
  ~OnednnSoftmax();

  // False if oneDNN does not support the call; nothing is written then.
  bool run(const SoftmaxCall& call);

 private:
  struct Engine;
  std::unique_ptr<Engine> engine_;
};

}  // namespace memfathom::cpu

// DenseSoftmax: softmax by a library for dense fp32 rows, the common case; the loops compute the
// rest, and everything in the portable device.
#pragma once

#include <memory>

#include "kernels/framework/device/calls.h"

namespace memfathom::cpu {

class DenseSoftmax {
 public:
  DenseSoftmax();
  ~DenseSoftmax();

  // False if the call is one for the loops; nothing is written then.
  bool run(const SoftmaxCall& call);

 private:
  struct Engine;
  std::unique_ptr<Engine> engine_;
};

}  // namespace memfathom::cpu

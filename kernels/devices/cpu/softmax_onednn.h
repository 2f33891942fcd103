// OnednnSoftmax through oneDNN: rows that lie densely in fp32, the form of nearly all of them; the
// loops do the rest.
#pragma once

#include <memory>

#include "kernels/framework/device/calls.h"

namespace memfathom::cpu {

class OnednnSoftmax {
 public:
  OnednnSoftmax();
  ~OnednnSoftmax();

  // False when the call is not of oneDNN's form; nothing was written then.
  bool run(const SoftmaxCall& call);

 private:
  struct Engine;
  std::unique_ptr<Engine> engine_;
};

}  // namespace memfathom::cpu

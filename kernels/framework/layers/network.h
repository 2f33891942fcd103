// Network: what a training loop sees of a model.
#pragma once

#include <cstdint>

#include "kernels/framework/tensor/tensor.h"

namespace memfathom {

class Network {
 public:
  virtual ~Network() = default;

  // Puts a batch of `size` samples on the device in place of the one before, which goes first
  // (BatchScope): `for x, y in loader:` gives the names to the host's tensors before anything is
  // copied. `targets`: what the loss compares with.
  virtual void load_batch(std::int64_t size, bool targets) = 0;

  // From the next batch on, samples of this many tokens. False: the model's inputs have no such
  // length.
  virtual bool set_length(std::int64_t) { return false; }

  // One forward pass to the loss. Only what `output` takes outlives the call: the model's output,
  // for loops that hold it (null: it dies when autograd lets it).
  virtual Tensor loss(Tensor* output) = 0;

  // Forgets the gradients of inputs, which no optimizer knows.
  virtual void clear_gradients() {}

  // Whether scripts for such models write `output = model(x)`: the output then lives until the next
  // one replaces it.
  virtual bool script_holds_output() const { return false; }

  // One forward pass without a loss; the result is what the caller holds.
  virtual Tensor forward() = 0;

  // Generation: the first token from the whole prompt, then one at a time. A model that does not
  // generate refuses.
  virtual Tensor prefill();
  virtual Tensor decode();
  virtual void end_generation() {}
};

}  // namespace memfathom

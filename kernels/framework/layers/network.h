// Network: a training loop's interface to a model.
#pragma once

#include <cstdint>

#include "kernels/framework/tensor/tensor.h"

namespace memfathom {

class Network {
 public:
  virtual ~Network() = default;

  // Replaces the batch on the device with one of `size` samples. The old batch is freed first
  // (BatchScope), because `for x, y in loader:` rebinds the names to host tensors before the copy.
  // `targets`: the loss targets.
  virtual void load_batch(std::int64_t size, bool targets) = 0;

  // Sets the tokens per sample from the next batch on. Returns false if the model's inputs have no
  // sequence length.
  virtual bool set_length(std::int64_t) { return false; }

  // One forward pass to the loss. If `output` is set, it receives the model's output and keeps it
  // alive; otherwise the output dies when autograd releases it.
  virtual Tensor loss(Tensor* output) = 0;

  // Clears the gradients of inputs, which the optimizer does not clear.
  virtual void clear_gradients() {}

  // Whether training scripts for this kind of model write `output = model(x)`, which keeps the
  // output alive until the next one replaces it.
  virtual bool script_holds_output() const { return false; }

  // One forward pass without a loss; the caller owns the result.
  virtual Tensor forward() = 0;

  // Generation: prefill of the whole prompt, then decode token by token. Throws if the model cannot
  // generate.
  virtual Tensor prefill();
  virtual Tensor decode();
  // The next decode() comes as after `tokens` more that were decoded before it: the cache grows by
  // all of them at once. Returns false, and changes nothing, if the model cannot.
  virtual bool skip_tokens(std::int64_t) { return false; }
  virtual void end_generation() {}
};

}  // namespace memfathom

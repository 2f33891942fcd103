// TrainingLoop: the loop around a network, as PyTorch scripts write it, with its phases noted in the ledger.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "kernels/layers/network.h"
#include "kernels/optim/optimizer.h"
#include "kernels/tensor/session.h"

namespace memfathom {

enum class ZeroGrad : std::uint8_t {
  kAfterStep,        // set_to_none after step(), or before the next forward: gradients and forward never meet
  kBeforeBackward,   // between forward and backward: old gradients live through forward
  kInPlace,          // filled with zeros (torch < 2.0): gradients live for ever
};

struct LoopOptions {
  OptimizerOptions optimizer;
  std::int64_t batch_size = 1;
  std::int64_t accumulation_steps = 1;
  std::optional<DType> autocast;
  bool grad_scaler = false;
  bool gradient_clipping = false;
  bool hold_output = false;
  ZeroGrad zero_grad = ZeroGrad::kAfterStep;
  // Real loops bring a new batch to the device each iteration, while the old one still has its name.
  bool reload_batch = false;
};

class TrainingLoop {
 public:
  TrainingLoop(Session& session, Network& network, std::vector<Tensor> trainable, LoopOptions options);

  // A forward pass in evaluation mode without gradients, before training (model summaries do this).
  void warm_up(std::int64_t batch_size);
  // One optimizer step over all its micro-batches; `batch_size` overrides the usual one (a short last batch).
  void iterate(std::optional<std::int64_t> batch_size = {});
  int iterations() const { return iteration_; }

 private:
  void forward_backward(std::int64_t batch_size, bool first);
  void clip_gradients();
  void clear_gradients();

  Session& session_;
  Network& network_;
  LoopOptions options_;
  OptimizerRun optimizer_;
  Tensor loss_;
  Tensor output_;
  Tensor scale_;
  int iteration_ = 0;
  std::int64_t loaded_ = 0;
};

}  // namespace memfathom

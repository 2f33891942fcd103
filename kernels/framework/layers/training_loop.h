// TrainingLoop: the loop around a network, as PyTorch scripts write it, with its phases noted in
// the ledger.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/enum_names.h"
#include "kernels/framework/layers/network.h"
#include "kernels/framework/optim/optimizer.h"
#include "kernels/framework/tensor/session.h"

namespace memfathom {

enum class ZeroGrad : std::uint8_t {
  kAfterStep,  // set_to_none after step(), or before the next forward: gradients and forward never
               // meet
  kBeforeBackward,  // between forward and backward: old gradients live through forward
  kInPlace,         // filled with zeros (torch < 2.0): gradients live for ever
};

template <>
inline constexpr auto kEnumNames<ZeroGrad> =
    std::to_array<EnumName<ZeroGrad>>({{ZeroGrad::kAfterStep, "after_step"},
                                       {ZeroGrad::kBeforeBackward, "before_backward"},
                                       {ZeroGrad::kInPlace, "in_place"}});

// Told at the turns of the loop: sharded and offloaded training does its own work there.
class LoopObserver {
 public:
  virtual ~LoopObserver() = default;
  virtual void before_forward() {}
  virtual void before_backward() {}
  virtual void after_backward() {}
  virtual void before_step() {}
  virtual void after_step() {}
  virtual void clear_gradients() {}
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
  // The loop of a real script: each iteration brings a new batch to the device, zero_grad() comes
  // between that and the forward pass, and the output has a name where such scripts give it one.
  bool mimic_user_script = false;
  // A benchmark's loop: backward keeps the graph, which dies with the step, and what is measured as
  // forward runs alone: a pass that meets gradients of an earlier one counts as backward.
  bool retain_graph = false;
  // Micro-batches whose forward passes all run before the first backward: the first stage of a
  // pipeline.
  std::int64_t micro_batches_in_flight = 1;
  LoopObserver* observer = nullptr;
};

class TrainingLoop {
 public:
  TrainingLoop(Session& session, Network& network, std::vector<Tensor> trainable,
               const LoopOptions& options);

  // A forward pass of two samples before training, as model summaries (torchsummary) run it: in
  // training mode, the graph recorded and let go.
  void warm_up();
  // One optimizer step over all its micro-batches; `batch_size` overrides the usual one (a short
  // last batch).
  void iterate(std::optional<std::int64_t> batch_size = {});
  // A forward pass to the loss in evaluation mode, between iterations: no graph, but parameters and
  // optimizer states are there, and the output is kept to the end, as for metrics.
  void evaluate(std::int64_t batch_size);
  int iterations() const { return iteration_; }

 private:
  void forward_backward(std::int64_t batch_size, bool first);
  Tensor forward(std::int64_t batch_size);
  void backward(const Tensor& root);
  Tensor unscale_gradients();
  void clip_gradients();
  void clear_gradients();

  Session& session_;
  Network& network_;
  LoopOptions options_;
  OptimizerRun optimizer_;
  Tensor loss_;
  Tensor output_;
  Tensor scale_, growth_;  // of the GradScaler
  int iteration_ = 0;
  std::int64_t loaded_ = 0;
  bool clear_before_forward_ = false;
};

}  // namespace memfathom

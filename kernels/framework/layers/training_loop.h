// TrainingLoop: runs a network the way PyTorch training scripts do and records phases in the
// ledger.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/enum_names.h"
#include "kernels/framework/layers/network.h"
#include "kernels/framework/optim/optimizer.h"
#include "kernels/framework/tensor/iteration_replay.h"
#include "kernels/framework/tensor/session.h"

namespace memfathom {

enum class ZeroGrad : std::uint8_t {
  kAfterStep,       // set_to_none after step() or before forward: no gradients exist during forward
  kBeforeBackward,  // between forward and backward: old gradients live through forward
  kInPlace,         // zeroed in place (torch < 2.0): gradients are never freed
};

template <>
inline constexpr auto kEnumNames<ZeroGrad> =
    std::to_array<EnumName<ZeroGrad>>({{ZeroGrad::kAfterStep, "after_step"},
                                       {ZeroGrad::kBeforeBackward, "before_backward"},
                                       {ZeroGrad::kInPlace, "in_place"}});

// Callbacks at each phase of the loop, for sharded and offloaded training.
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
  // A typical script's loop: each iteration copies a new batch to the device, then calls
  // zero_grad(), then forward; the output stays referenced where such scripts name it.
  bool mimic_user_script = false;
  // A benchmark's loop: backward retains the graph until the step ends. Only forward passes without
  // gradients from an earlier pass count as forward; the others count as backward.
  bool retain_graph = false;
  // Runs the forward passes of all micro-batches before the first backward pass, as a pipeline's
  // first stage does.
  std::int64_t micro_batches_in_flight = 1;
  LoopObserver* observer = nullptr;
};

class TrainingLoop {
 public:
  TrainingLoop(Session& session, Network& network, std::vector<Tensor> trainable,
               const LoopOptions& options);

  // A forward pass of two samples in training mode before training, as torchsummary runs it:
  // records a graph and releases it.
  void warm_up();
  // One optimizer step over all micro-batches; `batch_size` overrides the default (for a short last
  // batch).
  void iterate(std::optional<std::int64_t> batch_size = {});
  // The same, written down for repeat().
  void iterate_to_repeat();
  // Another iteration like the last: played from what the last one allocated where nothing but the
  // layers takes part, on a device that does not compute.
  void repeat();
  // A forward pass to the loss in evaluation mode, between iterations: no graph, but parameters and
  // optimizer states are resident, and the output lives to the end, as for metrics.
  void evaluate(std::int64_t batch_size);
  int iterations() const { return iteration_; }

 private:
  void begin_phase(const char* name);
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
  IterationReplay replay_;
  Tensor loss_;
  Tensor output_;
  Tensor scale_, growth_;  // of the GradScaler
  int iteration_ = 0;
  std::int64_t loaded_ = 0;
  bool clear_before_forward_ = false;
};

}  // namespace memfathom

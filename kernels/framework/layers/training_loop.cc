#include "kernels/framework/layers/training_loop.h"

#include <utility>

#include "kernels/framework/ops/arithmetic.h"
#include "kernels/framework/tensor/engine.h"

namespace memfathom {

TrainingLoop::TrainingLoop(Session& session, Network& network, std::vector<Tensor> trainable,
                           const LoopOptions& options)
    : session_(session),
      network_(network),
      options_(options),
      optimizer_(options_.optimizer, std::move(trainable)),
      replay_(session) {}

void TrainingLoop::warm_up() {
  constexpr std::int64_t kSummarySamples = 2;
  session_.ledger().begin_phase("load", 0);
  network_.load_batch(kSummarySamples, false);
  loaded_ = 0;
  const AutocastScope autocast(session_, options_.autocast);
  network_.forward();
}

void TrainingLoop::iterate(std::optional<std::int64_t> batch_size) {
  ++iteration_;
  replay_.outdate();
  for (std::int64_t micro = 0; micro < options_.accumulation_steps; ++micro) {
    forward_backward(batch_size.value_or(options_.batch_size), micro == 0);
  }
  if (options_.optimizer.name != OptimizerName::kNone) {
    begin_phase("step");
    const NoGrad no_grad(session_);
    if (options_.observer != nullptr) options_.observer->before_step();
    const Tensor overflow = options_.grad_scaler ? unscale_gradients() : Tensor();
    if (options_.gradient_clipping) clip_gradients();
    optimizer_.step();
    if (options_.observer != nullptr) options_.observer->after_step();
  }
  if (options_.zero_grad == ZeroGrad::kAfterStep && !options_.mimic_user_script) clear_gradients();
}

void TrainingLoop::begin_phase(const char* name) {
  session_.ledger().begin_phase(name, iteration_);
  if (session_.recorder != nullptr) session_.recorder->phase(name);
}

void TrainingLoop::iterate_to_repeat() {
  const bool is_replayable =
      !session_.computes() && options_.observer == nullptr && session_.offload_session == nullptr;
  if (!is_replayable) return iterate();
  replay_.begin();
  try {
    iterate();
  } catch (...) {
    session_.recorder = nullptr;
    throw;
  }
  replay_.end();
}

void TrainingLoop::repeat() {
  if (!replay_.is_ready()) return iterate();
  replay_.play(++iteration_);
}

void TrainingLoop::evaluate(std::int64_t batch_size) {
  if (options_.mimic_user_script && options_.zero_grad == ZeroGrad::kAfterStep) clear_gradients();
  replay_.outdate();
  session_.ledger().begin_phase("evaluate", iteration_);
  if (options_.observer != nullptr) options_.observer->before_forward();
  network_.load_batch(batch_size, true);
  loaded_ = 0;
  const NoGrad no_grad(session_);
  const Scoped<bool> evaluation(session_.training, false);
  const AutocastScope autocast(session_, options_.autocast);
  Tensor output;
  const Tensor loss = network_.loss(&output);
  output.reset();
  network_.end_generation();  // releases the rest of the output
}

Tensor TrainingLoop::forward(std::int64_t batch_size) {
  if (options_.observer != nullptr) options_.observer->before_forward();
  if (loaded_ != batch_size || options_.mimic_user_script) {
    network_.load_batch(batch_size, true);
    loaded_ = batch_size;
  }
  if (std::exchange(clear_before_forward_, false)) clear_gradients();
  const AutocastScope autocast(session_, options_.autocast);
  const bool hold =
      options_.hold_output || (options_.mimic_user_script && network_.script_holds_output());
  Tensor output;
  Tensor loss = network_.loss(hold ? &output : nullptr);
  if (hold) output_ = std::move(output);
  return loss;
}

void TrainingLoop::backward(const Tensor& root) {
  if (options_.observer != nullptr) options_.observer->before_backward();
  run_backward(root, options_.retain_graph ? GraphRetention::kRetained : GraphRetention::kFreed);
  if (options_.observer != nullptr) options_.observer->after_backward();
}

void TrainingLoop::forward_backward(std::int64_t batch_size, bool first) {
  clear_before_forward_ =
      first && options_.zero_grad == ZeroGrad::kAfterStep && options_.mimic_user_script;
  if (options_.retain_graph && std::exchange(clear_before_forward_, false)) clear_gradients();
  const bool forward_is_measured = first || !options_.retain_graph;
  begin_phase(forward_is_measured ? "forward" : "backward");
  std::vector<Tensor> earlier;
  for (std::int64_t i = 1; i < options_.micro_batches_in_flight; ++i)
    earlier.push_back(forward(batch_size));
  loss_ = forward(batch_size);
  if (first && options_.zero_grad == ZeroGrad::kBeforeBackward) clear_gradients();
  Tensor root = loss_;
  if (options_.grad_scaler) {
    const ComponentScope scope(session_, Component::kLogitsLoss);
    if (!scale_) {
      scale_ = session_.full({}, DType::kFp32, 65536);
      growth_ = session_.zeros({}, DType::kInt32);
    }
    root = mul(loss_, scale_);
  }
  begin_phase("backward");
  if (earlier.empty()) {
    backward(root);
    if (options_.retain_graph) {
      loss_.reset();
      output_.reset();
    }
    return;
  }
  // Backward passes run in the order of the forward passes.
  for (Tensor& loss : earlier) {
    backward(loss);
    loss.reset();
  }
  backward(root);
}

// GradScaler.unscale_: allocates the inverse scale, the overflow flag and a device copy of both;
// the copy lives until update(). Only the memory is reproduced, not the values.
Tensor TrainingLoop::unscale_gradients() {
  const Tensor inverse = session_.empty({}, DType::kFp32);
  const Tensor overflow = session_.zeros({}, DType::kFp32);
  Tensor overflow_copy = session_.zeros({}, DType::kFp32);
  const Tensor inverse_copy = session_.empty({}, DType::kFp32);
  return overflow_copy;
}

// clip_grad_norm_: a norm per gradient, their total norm and the factor; gradients are scaled in
// place. Only the memory is reproduced: measured loops do not need clipped values.
void TrainingLoop::clip_gradients() {
  std::vector<Tensor> norms;
  for (const Tensor& parameter : optimizer_.parameters()) {
    if (parameter.grad()) norms.push_back(session_.empty({}, DType::kFp32));
  }
  const Tensor stacked = session_.empty({static_cast<std::int64_t>(norms.size())}, DType::kFp32);
  const Tensor total = session_.empty({}, DType::kFp32);
  const Tensor factor = session_.empty({}, DType::kFp32);
}

void TrainingLoop::clear_gradients() {
  for (Tensor parameter : optimizer_.parameters()) parameter.set_grad({});
  network_.clear_gradients();
  if (options_.observer != nullptr) options_.observer->clear_gradients();
}

}  // namespace memfathom

#include "kernels/framework/tensor/checkpoint.h"

#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include "core/error.h"
#include "kernels/framework/tensor/engine.h"
#include "kernels/framework/tensor/recording.h"

namespace memfathom {
namespace {

// Thrown by pack() once all saved tensors of a segment exist again: the rest of it need not run.
struct RecomputationComplete {};

}  // namespace

CheckpointFrame::CheckpointFrame(Session& session, CheckpointedFunction segment,
                                 const Tensor& input, CheckpointPolicy keep)
    : session_(session),
      segment_(std::move(segment)),
      input_(input),
      input_requires_grad_(input.requires_grad()),
      input_node_(input.impl()->grad_fn),
      input_number_(input.impl()->output_number),
      autocast_(session.autocast),
      module_(session.module),
      keep_(keep) {}

void destroy(CheckpointFrame* frame) { delete frame; }

void CheckpointFrame::note_result(const char* operation, const Tensor& result) {
  if (keep_ == CheckpointPolicy::kRecomputeAll || recomputing_) return;
  const std::string_view name = operation;
  const bool product = name == "mm" || name == "addmm" || name == "linear";
  const bool attention = name.find("attention") != std::string_view::npos;
  if (attention || (product && products_++ % 2 == 0)) kept_.emplace_back(result);
}

SavedTensor CheckpointFrame::pack(const Tensor& tensor) {
  if (!recomputing_) return SavedTensor(Ref<CheckpointFrame>(this), packed_++);
  tensors_.push_back(tensor.detach());
  if (tensors_.size() == packed_) throw RecomputationComplete{};
  return SavedTensor(tensor);
}

Tensor CheckpointFrame::unpack(std::uint32_t index) {
  if (!recomputed_) recompute();
  return std::move(tensors_[index]);
}

void CheckpointFrame::recompute() {
  recomputing_ = true;
  kept_.clear();  // they are replaced by the recomputed tensors
  tensors_.reserve(packed_);
  {
    const Scoped<bool> grad(session_.grad_enabled, true);
    const Scoped<bool> thread(session_.in_backward, true);
    const Scoped<CheckpointFrame*> frame(session_.checkpoint, this);
    const Scoped<ModuleIndex> module(session_.module, module_);
    const AutocastScope autocast(session_, autocast_);
    Tensor input = input_.unpack();
    input.set_requires_grad(input_requires_grad_);
    input.impl()->grad_fn = input_node_;
    input.impl()->output_number = input_number_;
    try {
      segment_(input);
    } catch (const RecomputationComplete&) {
    }
  }
  recomputing_ = false;
  recomputed_ = true;
}

Tensor checkpoint(const CheckpointedFunction& segment, const Tensor& input, CheckpointPolicy keep) {
  Session& session = input.session();
  if (!session.grad_enabled) return segment(input);
  const Ref<CheckpointFrame> frame = make_ref<CheckpointFrame>(session, segment, input, keep);
  const Scoped<CheckpointFrame*> scope(session.checkpoint, frame.get());
  return segment(input);
}

namespace {

// The state of a reentrant checkpoint's closure; a std::function is too large for a node.
struct Reentrant {
  CheckpointedMultiFunction segment;
  std::size_t inputs = 0;
  std::vector<OutputMeta> outputs;  // without extents for an undefined output
  std::optional<DType> autocast;
  ModuleIndex module = 0;
};

void run_again(Backward& b, const Reentrant& kept) {
  Session& session = b.session();
  const Scoped<ModuleIndex> module(session.module, kept.module);
  std::vector<Tensor> again;
  for (std::size_t i = 0; i < kept.inputs; ++i) {
    again.push_back(b.saved(i));
    if (again.back()) again.back().set_requires_grad(b.needs(i));
  }
  // Unused outputs get gradients of zeros, which are allocated first.
  std::vector<Tensor> given;
  for (std::size_t i = 0; i < kept.outputs.size(); ++i) {
    given.push_back(b.gradient(i));
    const OutputMeta& meta = kept.outputs[i];
    if (!given.back()) given.back() = session.zeros(meta.shape, meta.dtype);
  }
  std::vector<Tensor> results;
  {
    const Scoped<bool> grad(session.grad_enabled, true);
    const AutocastScope autocast(session, kept.autocast);
    results = kept.segment(again);
  }
  std::vector<Tensor> roots;
  std::vector<Tensor> gradients;
  std::size_t number = 0;
  for (const Tensor& result : results) {
    if (!result) continue;
    const Tensor& gradient = given[number++];
    if (!result.requires_grad()) continue;
    roots.push_back(result);
    gradients.push_back(gradient);
  }
  if (roots.empty()) {
    throw Error(ErrorKind::kInput,
                "a reentrant checkpoint has no output that requires a gradient, where PyTorch "
                "raises an error; set training.checkpoint_reentrant to false");
  }
  run_backward(roots, gradients);
  for (std::size_t i = 0; i < kept.inputs; ++i) {
    if (b.needs(i) && again[i].grad()) b.give(i, again[i].grad());
  }
}

}  // namespace

std::vector<Tensor> checkpoint_reentrant(const CheckpointedMultiFunction& segment,
                                         std::span<const Tensor> inputs) {
  Session& session = inputs.front().session();
  Recording tape(session, "CheckpointFunction", inputs);
  for (const Tensor& input : inputs) tape.save(input);
  std::vector<Tensor> outputs;
  {
    const NoGrad no_grad(session);
    outputs = segment(inputs);
  }
  if (!tape.wanted()) return outputs;
  const auto kept = std::make_shared<Reentrant>();
  kept->segment = segment;
  kept->inputs = inputs.size();
  kept->autocast = session.autocast;
  kept->module = session.module;
  for (Tensor& output : outputs) {
    if (!output) continue;
    // An input returned unchanged becomes a view of itself with a new history.
    output = output.detach();
    kept->outputs.push_back({output.shape(), output.dtype()});
    tape.attach(output);
  }
  tape.set_function([kept](Backward& b) { run_again(b, *kept); });
  return outputs;
}

Tensor checkpoint_reentrant(const CheckpointedFunction& segment, const Tensor& input) {
  const CheckpointedMultiFunction joining = [segment](std::span<const Tensor> inputs) {
    return std::vector<Tensor>{segment(inputs.front())};
  };
  return checkpoint_reentrant(joining, std::span(&input, 1)).front();
}

}  // namespace memfathom

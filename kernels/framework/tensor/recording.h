// Recording: adds an operation to the tape.
//
//   Recording tape(session, "silu", {&x});
//   tape.save(x);  // inputs before the kernel runs, outputs before finish(), as PyTorch does
//   Tensor y = ...;
//   tape.finish(y, [](Backward& b) { ... });
#pragma once

#include <initializer_list>
#include <span>
#include <utility>
#include <vector>

#include "kernels/framework/tensor/checkpoint.h"
#include "kernels/framework/tensor/session.h"
#include "kernels/framework/tensor/tape_node.h"

namespace memfathom {

class Recording {
 public:
  // `inputs` are the differentiable ones in PyTorch's order; null or undefined if absent.
  Recording(Session& session, const char* name, std::initializer_list<const Tensor*> inputs);
  // For operations on a list of tensors.
  Recording(Session& session, const char* name, std::span<const Tensor> inputs);

  // Whether any input, or one input, requires a gradient.
  bool wanted() const { return static_cast<bool>(node_); }
  bool needs(std::size_t input) const { return node_ && node_->edges[input].node; }

  void save(const Tensor& tensor);

  template <typename F>
  void finish(Tensor& output, F function) {
    if (!node_) return;
    attach(output);
    set_function(std::move(function));
  }
  template <typename F>
  void finish(std::initializer_list<Tensor*> outputs, F function) {
    if (!node_) return;
    for (Tensor* output : outputs) attach(*output);
    set_function(std::move(function));
  }
  // For operations with many outputs: attach each, then set the function once.
  void attach(Tensor& output);
  template <typename F>
  void set_function(F function) {
    if (!node_) return;
    node_->set_function(std::move(function));
    move_to_host();
  }

 private:
  struct PendingOffload {
    std::size_t place;  // among the node's saved tensors
    Tensor tensor;
  };
  void move_to_host();

  Session& session_;
  Ref<TapeNode> node_;
  // Offloads saved tensors to the host after the operation has run, because outputs have no values
  // before.
  std::vector<PendingOffload> waiting_;
};

}  // namespace memfathom

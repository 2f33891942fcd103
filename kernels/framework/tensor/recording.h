// Recording: how an operation puts itself on the tape.
//
//   Recording tape(session, "silu", {&x});
//   tape.save(x);                                  // inputs before the kernel runs, as PyTorch
//   does Tensor y = ...; tape.finish(y, [](Backward& b) { ... });       // outputs are saved before
//   finish()
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
  // `inputs` are those with a derivative, in PyTorch's order; null or undefined where one is
  // absent.
  Recording(Session& session, const char* name, std::initializer_list<const Tensor*> inputs);
  // For operations on a list of tensors.
  Recording(Session& session, const char* name, std::span<const Tensor> inputs);

  // Whether a gradient is wanted at all, and for one input.
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
  // What goes to the host goes when the operation has run: an output has its values only then.
  std::vector<PendingOffload> waiting_;
};

}  // namespace memfathom

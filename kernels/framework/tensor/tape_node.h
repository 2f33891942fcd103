// TapeNode: one recorded operation: its saved tensors, the destinations of its gradients and its
// backward function.
#pragma once

#include <cstddef>
#include <cstdint>
#include <new>
#include <type_traits>
#include <utility>
#include <vector>

#include "kernels/framework/tensor/recycled.h"
#include "kernels/framework/tensor/small_vector.h"
#include "kernels/framework/tensor/tensor.h"

namespace memfathom {

class CheckpointFrame;
class Backward;

void destroy(CheckpointFrame* frame);  // for Ref

// A tensor saved for backward. Inside a checkpointed segment it is a placeholder that is recomputed
// by rerunning the segment.
class SavedTensor {
 public:
  explicit SavedTensor(const Tensor& tensor);
  SavedTensor(Ref<CheckpointFrame> frame, std::uint32_t index);
  SavedTensor(SavedTensor&&) noexcept;
  SavedTensor& operator=(SavedTensor&&) noexcept;
  ~SavedTensor();

  Tensor unpack() const;

 private:
  Tensor tensor_;
  Ref<CheckpointFrame> frame_;
  std::uint32_t index_ = 0;
  Session* home_ = nullptr;  // for a tensor offloaded to the host: the session to restore it to
};

struct Edge {
  Ref<TapeNode> node;
  std::uint32_t input = 0;  // which of the node's incoming gradients
};

// Extents and type of a forward output; incoming gradients are reduced and cast to them.
struct OutputMeta {
  Shape shape;
  DType dtype = DType::kFp32;
};

class TapeNode final : public RefCounted {
 public:
  // Gradient accumulation into a leaf runs before everything else, as in PyTorch.
  static constexpr std::uint64_t kFirst = ~std::uint64_t{0};
  static constexpr std::size_t kClosureBytes = 384;

  TapeNode(const char* name, std::uint64_t sequence) : name_(name), sequence_(sequence) {}
  ~TapeNode();

  const char* name() const { return name_; }
  std::uint64_t sequence() const { return sequence_; }

  // `function(Backward&)` computes the gradients; small captures only. Called once.
  template <typename F>
  void set_function(F function) {
    static_assert(sizeof(F) <= kClosureBytes);
    static_assert(alignof(F) <= alignof(std::max_align_t));
    closure_ = new (take_recycled(sizeof(F))) F(std::move(function));
    invoke_ = [](void* closure, Backward& b) { (*static_cast<F*>(closure))(b); };
    destroy_ = [](void* closure) {
      static_cast<F*>(closure)->~F();
      give_recycled(closure, sizeof(F));
    };
  }
  void apply(Backward& backward) { invoke_(closure_, backward); }
  // Frees saved tensors and captures; edges live as long as the graph.
  void release();

  SmallVector<Edge, 3> edges;  // one per forward input; a null node: no gradient required
  SmallVector<SavedTensor, 3> saved;
  SmallVector<OutputMeta, 1> outputs;
  std::int32_t slot = -1;  // used by the engine
  ModuleIndex module =
      0;  // the operation's module; its backward allocations count for the same one

 private:
  const char* name_;
  std::uint64_t sequence_;
  Ref<TapeNode> next_to_destroy_;
  void (*invoke_)(void*, Backward&) = nullptr;
  void (*destroy_)(void*) = nullptr;
  void* closure_ = nullptr;
};

// A node function's arguments: incoming gradients, saved tensors, and the results to set.
class Backward {
 public:
  Backward(Session& session, TapeNode& node, SmallVector<Tensor, 2>& gradients)
      : session_(session), node_(node), gradients_(gradients) {
    results.resize(node.edges.size());
  }

  Session& session() const { return session_; }
  // Undefined if no gradient reached that output.
  const Tensor& gradient(std::size_t output = 0) const { return gradients_[output]; }
  // Releases the incoming gradient, so that it can be passed on or freed early.
  Tensor take_gradient(std::size_t output = 0) { return std::move(gradients_[output]); }
  Tensor saved(std::size_t i) const { return node_.saved[i].unpack(); }
  bool needs(std::size_t input) const { return static_cast<bool>(node_.edges[input].node); }
  void give(std::size_t input, Tensor gradient) { results[input] = std::move(gradient); }

  SmallVector<Tensor, 3> results;

 private:
  Session& session_;
  TapeNode& node_;
  SmallVector<Tensor, 2>& gradients_;
};

}  // namespace memfathom

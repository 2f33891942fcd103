// Checkpoint: a segment whose saved tensors are not kept but computed again when backward first
// asks for one.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "kernels/framework/tensor/session.h"
#include "kernels/framework/tensor/tape_node.h"

namespace memfathom {

using CheckpointedFunction = std::function<Tensor(const Tensor&)>;

// What a checkpoint keeps beside its input. kSelective: results of attention and of every second
// matrix product, as torchtitan's per-operation choice does; they need not be computed again.
enum class CheckpointPolicy : std::uint8_t { kRecomputeAll, kSelective };

// PyTorch's non-reentrant checkpoint: what operations save inside the segment becomes a number;
// unpacking the first of them runs the segment again, which stops as soon as the last saved tensor
// exists again.
class CheckpointFrame final : public RefCounted {
 public:
  CheckpointFrame(Session& session, CheckpointedFunction segment, const Tensor& input,
                  CheckpointPolicy keep);

  SavedTensor pack(const Tensor& tensor);
  Tensor unpack(std::uint32_t index);
  // An operation inside the segment gave this result.
  void note_result(const char* operation, const Tensor& result);

 private:
  void recompute();

  Session& session_;
  CheckpointedFunction segment_;
  SavedTensor input_;
  bool input_requires_grad_;
  // Where the input came from: run again, it is no more of a leaf than it was (autocast would keep
  // a leaf's cast).
  Ref<TapeNode> input_node_;
  std::uint8_t input_number_;
  std::optional<DType> autocast_;
  ModuleIndex module_;
  std::uint32_t packed_ = 0;
  bool recomputing_ = false;
  bool recomputed_ = false;
  std::vector<Tensor> tensors_;
  CheckpointPolicy keep_;
  std::uint32_t products_ = 0;
  std::vector<SavedTensor> kept_;
};

// output = segment(input), checkpointed. Without gradients it is the plain call.
Tensor checkpoint(const CheckpointedFunction& segment, const Tensor& input,
                  CheckpointPolicy keep = CheckpointPolicy::kRecomputeAll);

// The reentrant variant: the segment runs without a tape; backward runs it again with one, and then
// its own backward. Every tensor from outside through which gradients go is to be an input, and
// every one that goes on is an output; undefined ones are passed along.
using CheckpointedMultiFunction = std::function<std::vector<Tensor>(std::span<const Tensor>)>;
std::vector<Tensor> checkpoint_reentrant(const CheckpointedMultiFunction& segment,
                                         std::span<const Tensor> inputs);
Tensor checkpoint_reentrant(const CheckpointedFunction& segment, const Tensor& input);

}  // namespace memfathom

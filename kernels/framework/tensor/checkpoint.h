// Checkpoint: a segment that recomputes its saved tensors when backward first needs one.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "kernels/framework/tensor/session.h"
#include "kernels/framework/tensor/tape_node.h"

namespace memfathom {

using CheckpointedFunction = std::function<Tensor(const Tensor&)>;

// What a checkpoint saves in addition to its input. kSelective: the results of attention and of
// every second matmul, as torchtitan's selective checkpointing; they are not recomputed.
enum class CheckpointPolicy : std::uint8_t { kRecomputeAll, kSelective };

// PyTorch's non-reentrant checkpoint: saved tensors of the segment are replaced by indices.
// Unpacking the first one reruns the segment, which stops once its last saved tensor exists again.
class CheckpointFrame final : public RefCounted {
 public:
  CheckpointFrame(Session& session, CheckpointedFunction segment, const Tensor& input,
                  CheckpointPolicy keep);

  SavedTensor pack(const Tensor& tensor);
  Tensor unpack(std::uint32_t index);
  // Records a result of an operation inside the segment.
  void note_result(const char* operation, const Tensor& result);

 private:
  void recompute();

  Session& session_;
  CheckpointedFunction segment_;
  SavedTensor input_;
  bool input_requires_grad_;
  // The input's history: in the rerun the input must not become a leaf, because autocast would
  // cache its cast.
  Ref<TapeNode> input_node_;
  std::uint32_t input_number_;
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

// output = segment(input), checkpointed. A plain call if gradients are disabled.
Tensor checkpoint(const CheckpointedFunction& segment, const Tensor& input,
                  CheckpointPolicy keep = CheckpointPolicy::kRecomputeAll);

// The reentrant variant: the segment runs without a tape; backward reruns it with one, then runs
// its backward. Every external tensor that needs a gradient must be an input, and every tensor used
// later must be an output; undefined ones are allowed.
using CheckpointedMultiFunction = std::function<std::vector<Tensor>(std::span<const Tensor>)>;
std::vector<Tensor> checkpoint_reentrant(const CheckpointedMultiFunction& segment,
                                         std::span<const Tensor> inputs);
Tensor checkpoint_reentrant(const CheckpointedFunction& segment, const Tensor& input);

}  // namespace memfathom

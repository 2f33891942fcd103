// BlockReplays: runs a model's blocks, those alike once, and plays the others (SegmentReplay).
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "estimator/models/blocks/key_value_cache.h"
#include "estimator/models/blocks/settings.h"
#include "kernels/framework/layers/builder.h"
#include "kernels/framework/tensor/segment_replay.h"

namespace memfathom {

class BlockReplays {
 public:
  // In the block's BlockScope, before it is made. Blocks of one kind run the same code with the
  // same settings; their parameters may differ, and are compared. The builder must outlive the
  // passes.
  void add(const Builder& builder, std::uint32_t kind);

  // A forward pass over all blocks in their order. `cache` and `last_weights` may be null.
  class Pass {
   public:
    Pass(BlockReplays& blocks, const ModelSettings& settings, KeyValueCache* cache,
         Tensor* last_weights);
    // Block `index` with x: `run`, or what it would have done.
    Tensor operator()(std::size_t index, const Tensor& x, const SegmentFunction& run);

   private:
    BlockReplays& blocks_;
    KeyValueCache* cache_;
    Tensor* last_weights_;
    bool is_replaying_;
    std::map<std::size_t, std::shared_ptr<SegmentReplay>> replays_;  // by class
  };

 private:
  struct Block {
    std::int64_t number;  // as the builder counts
    std::uint32_t kind;
    std::string path;
    std::vector<NamedTensor> all;    // parameters, their names from the block on
    std::vector<Tensor> parameters;  // those with gradients
    std::size_t alike = 0;           // the first block that this one is like
  };

  void compare();

  const Builder* builder_ = nullptr;
  std::vector<Block> blocks_;
  std::vector<std::size_t> last_alike_;  // by class: the last block
  bool is_compared_ = false;
  bool is_observed_ = false;  // some parameter is sharded or offloaded: its memory comes and goes
};

}  // namespace memfathom

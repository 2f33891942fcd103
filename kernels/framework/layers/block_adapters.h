// BlockAdapters: the bottleneck adapters of a model's blocks, found by the block that has just run.
#pragma once

#include <cstdint>
#include <unordered_map>

#include "kernels/framework/layers/builder.h"

namespace memfathom {

class BlockAdapters {
 public:
  // The builder outlives it.
  explicit BlockAdapters(const Builder& builder) : builder_(builder) {}

  // output + up(relu(down(output))) with the adapters of `block`. Blocks are told apart by their
  // address and numbered by their first run, which is in the model's order; a checkpoint that runs
  // one again meets the same adapters.
  Tensor after(const void* block, const Tensor& output);

 private:
  const Builder& builder_;
  std::unordered_map<const void*, std::int64_t> numbers_;
};

}  // namespace memfathom

// BlockAdapters: the bottleneck adapters that follow a model's blocks.
#pragma once

#include <cstdint>
#include <unordered_map>

#include "kernels/framework/layers/builder.h"

namespace memfathom {

class BlockAdapters {
 public:
  // The builder must outlive it.
  explicit BlockAdapters(const Builder& builder) : builder_(builder) {}

  // output + up(relu(down(output))) with the adapters of `block`. Blocks are identified by address
  // and numbered in the order of their first run; a checkpoint that reruns a block gets the same
  // adapters.
  Tensor after(const void* block, const Tensor& output);

 private:
  const Builder& builder_;
  std::unordered_map<const void*, std::int64_t> numbers_;
};

}  // namespace memfathom

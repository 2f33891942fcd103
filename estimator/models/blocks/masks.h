// Masks: positions and attention masks as transformers makes them at the beginning of a forward
// pass.
#pragma once

#include <cstdint>

#include "core/dtype.h"
#include "kernels/framework/tensor/tensor.h"

namespace memfathom {

struct MaskCase {
  std::int64_t batch = 1;
  std::int64_t queries = 1;
  std::int64_t keys = 1;
  bool causal = true;
  bool cached = false;      // a cache is in use: positions are not searched for packed sequences
  bool positions = true;    // the model hands its position ids to the mask's maker
  Tensor padding;           // the batch's int64 mask [b, t]; undefined: none
  std::int64_t window = 0;  // sliding window, to both sides where not causal; 0: none
  bool forced = false;      // a static cache's decoding step always has one
  bool eager = false;  // numbers of `dtype` instead of truth values, and always there when causal
  DType dtype = DType::kFp32;
};

// torch.arange(length) + offset, as [1, length].
Tensor make_positions(Session& session, std::int64_t length);

// [b, 1, s, t] or broadcast to it; undefined where the kernel's own flag says it all.
Tensor make_mask(Session& session, const MaskCase& c);

}  // namespace memfathom

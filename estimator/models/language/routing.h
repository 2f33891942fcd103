// Routing: which experts a token goes to, and with what weights, as Mixtral's router decides it.
#pragma once

#include <cstdint>

#include "kernels/layers/linear.h"

namespace memfathom {

struct Routing {
  Tensor logits;   // [T, experts]
  Tensor weights;  // [T, per token]
  Tensor chosen;   // [T, per token], int64
};

// softmax in fp32, the largest `per_token`, divided by their sum; the weights stay in fp32.
Routing route(const Linear& router, const Tensor& tokens, std::int64_t per_token);

}  // namespace memfathom

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

struct RouterPlan {
  bool normalized = true;  // the chosen experts' weights are divided by their sum
  bool narrow = false;     // Qwen: and cast to the logits' type
};

// softmax in fp32, the largest `per_token`, and what the plan does to them.
Routing route(const Linear& router, const Tensor& tokens, std::int64_t per_token,
              const RouterPlan& plan);

}  // namespace memfathom

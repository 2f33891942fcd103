// Routing: which experts a token goes to, and with what weights, as Mixtral's router decides it.
#pragma once

#include <cstdint>

#include "kernels/framework/layers/linear.h"

namespace memfathom {

struct Routing {
  Tensor logits;   // [T, experts]
  Tensor weights;  // [T, per token]
  Tensor chosen;   // [T, per token], int64
};

enum class RouterKind : std::uint8_t {
  kSoftmax,         // over all experts in fp32, then the largest
  kWideSoftmax,     // DeepSeek V2: the product in fp32 too, the weights scaled
  kSigmoid,         // DeepSeek V3: each expert by itself, a correction for the choice alone
  kTopThenSoftmax,  // gpt-oss: over the largest logits
};

// Whether the router computes its logits from an fp32 copy of its weight, which therefore is never
// quantized.
inline bool casts_weight(RouterKind kind) {
  return kind == RouterKind::kWideSoftmax || kind == RouterKind::kSigmoid;
}

struct RouterConfig {
  RouterKind kind = RouterKind::kSoftmax;
  bool normalized = true;    // the chosen experts' weights are divided by their sum
  bool narrow = false;       // Qwen: and cast to the logits' type
  bool wide_logits = false;  // Granite: of kTopThenSoftmax, in fp32; the weights are cast back
  std::int64_t groups = 1;   // of experts, of which some are left out before the choice
};

struct Router {
  RouterConfig cfg;
  std::int64_t per_token = 0;
  Linear gate;
  Tensor correction;  // a buffer, of kSigmoid
};

// The router's logits and choice for tokens [T, hidden].
Routing route(const Router& router, const Tensor& tokens);

}  // namespace memfathom

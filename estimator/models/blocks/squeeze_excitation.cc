#include "estimator/models/blocks/squeeze_excitation.h"

#include "kernels/framework/ops/arithmetic.h"
#include "kernels/framework/ops/pool.h"

namespace memfathom {

Layer squeeze_excitation_layer(const ImageContext& context, std::string_view name,
                               const SqueezeExcitationConfig& cfg) {
  const PathScope scope(context.builder, name);
  const Layer down = conv_layer(
      context, "fc1", {.in = cfg.channels, .out = cfg.squeezed, .kernel = 1, .bias = true});
  const Layer up = conv_layer(context, "fc2",
                              {.in = cfg.squeezed, .out = cfg.channels, .kernel = 1, .bias = true});
  const Layer inner = activation_layer(cfg.activation, cfg.in_place);
  const Layer gate = activation_layer(cfg.gate, false);
  return [=](const Tensor& x) {
    Tensor scale = adaptive_average_pool(x, {1, 1});
    scale = down(scale);
    scale = inner(scale);
    scale = up(scale);
    scale = gate(scale);
    return mul(scale, x);
  };
}

}  // namespace memfathom

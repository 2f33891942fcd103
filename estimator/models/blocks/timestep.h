// Timestep: the sinusoidal embedding of diffusion steps and the two matrices after it, as diffusers
// writes them.
#pragma once

#include <cstdint>
#include <string_view>

#include "kernels/framework/layers/linear.h"

namespace memfathom {

// [batch] to [batch, size] in fp32. The values do not matter: these models only run dry.
Tensor timestep_embedding(const Tensor& timesteps, std::int64_t size, bool flip_sin_to_cos);

struct TimestepEmbedding {
  Linear first, second;

  Tensor operator()(const Tensor& sample) const;
};

TimestepEmbedding make_timestep_embedding(Builder& builder, std::string_view name, std::int64_t in,
                                          std::int64_t size);

}  // namespace memfathom

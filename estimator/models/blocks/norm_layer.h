// NormLayer: the norms of language models: RMS norm in elementary operations, Gemma's variant,
// layer norm.
#pragma once

#include <cstdint>
#include <string_view>

#include "kernels/framework/layers/builder.h"
#include "kernels/framework/tensor/tensor.h"

namespace memfathom {

enum class NormKind : std::uint8_t {
  kRms,       // Llama: fp32 inside, the weight in the input's type
  kRmsWide,   // OLMo 2: the weight multiplied before the cast back
  kRmsMixed,  // T5: only the statistics in fp32, the product promoted, then in the weight's 16-bit
              // type
  kRmsOne,    // Gemma: fp32 throughout, 1 + weight
  kLayer,
  kLayerPlain,  // OLMo: layer norm in fp32 without weights
  kLayerOne,    // Nemotron: layer norm with 1 + weight
  kLayerWide,   // Cohere: layer norm in elementary fp32 operations, without bias
};

struct NormLayer {
  NormKind kind = NormKind::kRms;
  Tensor weight, bias;

  Tensor operator()(const Tensor& x) const;
};

NormLayer make_norm(Builder& builder, std::string_view name, NormKind kind, std::int64_t features,
                    bool bias = true);
// With a weight for each element of this shape.
NormLayer make_norm(Builder& builder, std::string_view name, NormKind kind, const Shape& features,
                    bool bias = true);

}  // namespace memfathom

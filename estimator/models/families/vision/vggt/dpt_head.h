// DptHead: dense predictions from four layers of a transformer's tokens, fused from coarse to fine
// (VGGT's form).
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "estimator/models/blocks/image_parts.h"
#include "kernels/framework/layers/normalization.h"

namespace memfathom {

class DptHead {
 public:
  DptHead() = default;
  DptHead(const ImageContext& context, std::string_view name, std::int64_t width,
          std::int64_t outputs);

  // Tokens [frames, patches, width] of four layers to [frames, outputs, height, width].
  Tensor operator()(std::span<const Tensor> tokens, std::int64_t height, std::int64_t width) const;

 private:
  struct Unit {
    Layer first, second;
    Tensor operator()(const Tensor& input) const;
  };
  struct Fusion {
    Unit beside, after;
    Layer out;
  };

  Unit make_unit(const ImageContext& context, std::string_view name) const;
  Tensor fused(const Fusion& fusion, const Tensor& coarse, const Tensor& fine,
               const Shape& size) const;

  LayerNorm norm_;
  std::vector<Layer> projections_, resizes_, narrows_;
  std::vector<Fusion> fusions_;  // finest first
  Layer out1_, out2_, out3_;
};

}  // namespace memfathom

// Fourier layers: spectral convolutions and FNO blocks, classic (Li et al.) and neuraloperator
// style, 1 to 3 dimensions.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/framework/layers/builder.h"
#include "kernels/framework/layers/normalization.h"
#include "kernels/framework/ops/convolution.h"

namespace memfathom {

enum class FnoStyle : std::uint8_t { kClassic, kNeuralop };

// A convolution with kernel 1 over 1 to 3 spatial dimensions.
struct PointwiseConv {
  Tensor weight, bias;

  Tensor operator()(const Tensor& x) const;
};

PointwiseConv make_pointwise(Builder& builder, std::string_view name, std::int64_t in,
                             std::int64_t out, int dims, bool bias);

// Transform, multiply the lowest modes by complex weights, transform back.
class SpectralConv {
 public:
  SpectralConv() = default;
  SpectralConv(Builder& builder, FnoStyle style, std::int64_t in, std::int64_t out,
               std::vector<std::int64_t> modes);
  Tensor operator()(const Tensor& x) const;

 private:
  Tensor classic(const Tensor& x) const;
  Tensor neuralop(const Tensor& x) const;

  FnoStyle style_ = FnoStyle::kClassic;
  std::int64_t out_ = 0;
  std::vector<std::int64_t> modes_;
  std::vector<Tensor> weights_;  // classic: one per corner of the spectrum; neuralop: one in total
  Tensor bias_;                  // neuralop
};

struct FnoBlockOptions {
  FnoStyle style = FnoStyle::kClassic;
  std::int64_t width = 0;
  std::vector<std::int64_t> modes;
  bool last = false;        // neuralop: the last block omits its two outer activations
  bool group_norm = false;  // neuralop: after the spectral convolution and after the channel MLP
};

class FnoBlock {
 public:
  FnoBlock(Builder& builder, const FnoBlockOptions& options);
  Tensor operator()(const Tensor& x) const;

 private:
  FnoBlockOptions options_;
  SpectralConv spectral_;
  PointwiseConv skip_;
  Tensor gate_;
  PointwiseConv mlp_in_, mlp_out_;
  GroupNorm norms_[2];
};

}  // namespace memfathom

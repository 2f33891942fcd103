#include "kernels/framework/layers/spectral.h"

#include <fmt/format.h>

#include <array>
#include <span>

#include "core/error.h"
#include "kernels/framework/ops/activation.h"
#include "kernels/framework/ops/arithmetic.h"
#include "kernels/framework/ops/fft.h"
#include "kernels/framework/ops/views.h"

namespace memfathom {
namespace {

Shape spatial_of(const Tensor& x) {
  Shape extents;
  for (int i = 2; i < x.rank(); ++i) extents.push_back(x.size(i));
  return extents;
}

// A region that covers the first two dimensions entirely.
Region whole(const Shape& shape) {
  Region region{shape, shape};
  for (std::int64_t& begin : region.begin) begin = 0;
  return region;
}

}  // namespace

Tensor PointwiseConv::operator()(const Tensor& x) const {
  ConvolutionOptions options;
  for (int i = 2; i < x.rank(); ++i) {
    options.stride.push_back(1);
    options.padding.push_back(0);
    options.dilation.push_back(1);
  }
  return convolution(x, weight, bias, options);
}

PointwiseConv make_pointwise(Builder& builder, std::string_view name, std::int64_t in,
                             std::int64_t out, int dims, bool bias) {
  const PathScope scope(builder, name);
  Shape shape{out, in};
  for (int i = 0; i < dims; ++i) shape.push_back(1);
  PointwiseConv conv;
  conv.weight = builder.parameter("weight", shape);
  if (bias) conv.bias = builder.parameter("bias", {out});
  return conv;
}

SpectralConv::SpectralConv(Builder& builder, FnoStyle style, std::int64_t in, std::int64_t out,
                           std::vector<std::int64_t> modes)
    : style_(style), out_(out), modes_(std::move(modes)) {
  if (modes_.empty() || modes_.size() > 3) {
    throw Error(
        ErrorKind::kInput,
        fmt::format("a spectral convolution has {} dimensions of modes; 1 to 3 are possible",
                    modes_.size()));
  }
  Shape shape{in, out};
  for (const std::int64_t m : modes_) shape.push_back(m);
  if (style == FnoStyle::kNeuralop) {
    shape[-1] = modes_.back() / 2 + 1;
    Shape wide{out};
    for (std::size_t i = 0; i < modes_.size(); ++i) wide.push_back(1);
    bias_ = builder.parameter("bias", wide);
    weights_.push_back(builder.parameter("weight", shape, DType::kComplex64));
    return;
  }
  const std::size_t corners = std::size_t{1} << (modes_.size() - 1);
  for (std::size_t i = 0; i < corners; ++i) {
    weights_.push_back(
        builder.parameter(fmt::format("weights{}", i + 1), shape, DType::kComplex64));
  }
}

Tensor SpectralConv::operator()(const Tensor& x) const {
  return style_ == FnoStyle::kClassic ? classic(x) : neuralop(x);
}

Tensor SpectralConv::classic(const Tensor& x) const {
  const int dims = static_cast<int>(modes_.size());
  const Tensor spectrum = rfftn(x, dims);
  Shape shape = spectrum.shape();
  shape[1] = out_;
  Tensor out = x.session().zeros(shape, DType::kComplex64);
  for (std::size_t corner = 0; corner < weights_.size(); ++corner) {
    Region region = whole(spectrum.shape());
    for (int d = 0; d < dims; ++d) {
      const std::int64_t m = modes_[static_cast<std::size_t>(d)];
      const std::int64_t n = spectrum.size(d + 2);
      if (m > n) {
        throw Error(ErrorKind::kInput, fmt::format("{} modes do not fit into a grid whose spectrum "
                                                   "has {}; use fewer modes or a finer grid",
                                                   m, n));
      }
      const bool high = d < dims - 1 && (corner >> d & 1) != 0;
      region.begin[d + 2] = high ? n - m : 0;
      region.end[d + 2] = high ? n : m;
    }
    const Tensor part = contract_modes(slice_region(spectrum, region), weights_[corner]);
    Region target = region;
    target.end[1] = out_;
    copy_into_region(out, target, part);
  }
  return irfftn(out, spatial_of(x));
}

Tensor SpectralConv::neuralop(const Tensor& x) const {
  const int dims = static_cast<int>(modes_.size());
  Tensor spectrum = rfftn(x, dims);
  // Shifts all dimensions but the last so that the kept modes are in the middle.
  std::array<int, 3> shifted{};
  for (int d = 0; d < dims - 1; ++d) shifted[static_cast<std::size_t>(d)] = d + 2;
  const std::span<const int> axes(shifted.data(), static_cast<std::size_t>(dims - 1));
  if (dims > 1) spectrum = roll(spectrum, axes, false);
  Shape shape = spectrum.shape();
  shape[1] = out_;
  Tensor out = x.session().zeros(shape, DType::kComplex64);
  Region region = whole(spectrum.shape());
  for (int d = 0; d < dims; ++d) {
    const std::int64_t n = spectrum.size(d + 2);
    const std::int64_t wanted =
        d == dims - 1 ? modes_.back() / 2 + 1 : modes_[static_cast<std::size_t>(d)];
    const std::int64_t m = std::min(wanted, n);
    if (d == dims - 1) {
      region.end[d + 2] = m;
    } else {
      region.begin[d + 2] = n / 2 - m / 2;
      region.end[d + 2] = region.begin[d + 2] + m;
    }
  }
  {
    // weight[:, :, ...] is sliced before the spectrum, so its gradient is computed after the
    // spectrum's.
    const Tensor weight = view(weights_[0], weights_[0].shape());
    const Tensor part = contract_modes(slice_region(spectrum, region), weight);
    Region target = region;
    target.end[1] = out_;
    copy_into_region(out, target, part);
  }
  if (dims > 1) out = roll(out, axes, true);
  Tensor back = irfftn(out, spatial_of(x));
  spectrum.reset();
  back = add(back, bias_);
  return back;
}

FnoBlock::FnoBlock(Builder& builder, const FnoBlockOptions& options) : options_(options) {
  const int dims = static_cast<int>(options.modes.size());
  const std::int64_t width = options.width;
  spectral_ = SpectralConv(builder, options.style, width, width, options.modes);
  skip_ = make_pointwise(builder, "skip", width, width, dims, options.style == FnoStyle::kClassic);
  if (options.style == FnoStyle::kClassic) return;
  mlp_in_ = make_pointwise(builder, "channel_mlp.0", width, width / 2, dims, true);
  mlp_out_ = make_pointwise(builder, "channel_mlp.1", width / 2, width, dims, true);
  Shape wide{1, width};
  for (int i = 0; i < dims; ++i) wide.push_back(1);
  gate_ = builder.parameter("channel_mlp_skip", wide);
  if (options.group_norm) {
    norms_[0] = make_group_norm(builder, "norm.0", 1, width);
    norms_[1] = make_group_norm(builder, "norm.1", 1, width);
  }
}

Tensor FnoBlock::operator()(const Tensor& x) const {
  if (options_.style == FnoStyle::kClassic) {
    Tensor t;
    {
      const Tensor spectral = spectral_(x);
      t = add(spectral, skip_(x));
    }
    return activate(Activation::kGelu, t);
  }
  const Tensor skipped = skip_(x);
  const Tensor gated = mul(gate_, x);
  Tensor spectral = spectral_(x);
  if (options_.group_norm) spectral = norms_[0](spectral);
  Tensor t = add(spectral, skipped);
  if (!options_.last) t = activate(Activation::kGelu, t);
  {
    Tensor inner = mlp_in_(t);
    inner = activate(Activation::kGelu, inner);
    inner = mlp_out_(inner);
    t = add(inner, gated);
  }
  if (options_.group_norm) t = norms_[1](t);
  if (!options_.last) t = activate(Activation::kGelu, t);
  return t;
}

}  // namespace memfathom

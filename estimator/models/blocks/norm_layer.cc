#include "estimator/models/blocks/norm_layer.h"

#include "kernels/framework/ops/arithmetic.h"
#include "kernels/framework/ops/norm.h"

namespace memfathom {
namespace {

// x * rsqrt(mean(x^2) + eps)
Tensor normalized(const Tensor& x) {
  Tensor scale = pow_scalar(x, 2);
  scale = mean(scale, {-1}, true);
  scale = add_scalar(scale, 1e-6);
  scale = rsqrt(scale);
  return mul(x, scale);
}

Tensor gemma_norm(const Tensor& x, const Tensor& weight) {
  Tensor output;
  {
    const Tensor wide = to_dtype(x, DType::kFp32);
    output = normalized(wide);
  }
  {
    Tensor factor = to_dtype(weight, DType::kFp32);
    factor = add_scalar(factor, 1);
    output = mul(output, factor);
  }
  return to_dtype(output, x.dtype());
}

Tensor wide_rms_norm(const Tensor& x, const Tensor& weight) {
  Tensor t = to_dtype(x, DType::kFp32);
  t = normalized(t);
  t = mul(weight, t);
  return to_dtype(t, x.dtype());
}

Tensor wide_layer_norm(const Tensor& x, const Tensor& weight) {
  Tensor hidden = to_dtype(x, DType::kFp32);
  const Tensor center = mean(hidden, {-1}, true);
  Tensor variance;
  {
    Tensor squared = sub(hidden, center);
    squared = pow_scalar(squared, 2);
    variance = mean(squared, {-1}, true);
  }
  {
    const Tensor centered = sub(hidden, center);
    Tensor scale = add_scalar(variance, 1e-5);
    scale = rsqrt(scale);
    hidden = mul(centered, scale);
  }
  {
    const Tensor wide = to_dtype(weight, DType::kFp32);
    hidden = mul(wide, hidden);
  }
  return to_dtype(hidden, x.dtype());
}

Tensor t5_norm(const Tensor& x, const Tensor& weight) {
  Tensor variance = to_dtype(x, DType::kFp32);
  variance = pow_scalar(variance, 2);
  variance = mean(variance, {-1}, true);
  Tensor hidden;
  {
    Tensor scale = add_scalar(variance, 1e-6);
    scale = rsqrt(scale);
    hidden = mul(x, scale);
  }
  if (is_16bit_float(weight.dtype())) hidden = to_dtype(hidden, weight.dtype());
  return mul(weight, hidden);
}

}  // namespace

Tensor NormLayer::operator()(const Tensor& x) const {
  switch (kind) {
    case NormKind::kRms: return rms_norm_python(x, weight);
    case NormKind::kRmsWide: return wide_rms_norm(x, weight);
    case NormKind::kRmsMixed: return t5_norm(x, weight);
    case NormKind::kRmsOne: return gemma_norm(x, weight);
    case NormKind::kLayer: return layer_norm(x, weight, bias);
    case NormKind::kLayerOne: {
      const Tensor factor = add_scalar(weight, 1);
      return layer_norm(x, factor, bias);
    }
    case NormKind::kLayerWide: return wide_layer_norm(x, weight);
    case NormKind::kLayerPlain: {
      Tensor t = to_dtype(x, DType::kFp32);
      t = layer_norm(t, {}, {});
      return to_dtype(t, x.dtype());
    }
  }
  return x;
}

NormLayer make_norm(Builder& builder, std::string_view name, NormKind kind, const Shape& features,
                    bool bias) {
  NormLayer layer;
  layer.kind = kind;
  if (kind == NormKind::kLayerPlain) return layer;
  const PathScope scope(builder, name);
  layer.weight = builder.parameter("weight", features);
  const bool has_bias = kind == NormKind::kLayer || kind == NormKind::kLayerOne;
  if (has_bias && bias) layer.bias = builder.parameter("bias", features);
  return layer;
}

NormLayer make_norm(Builder& builder, std::string_view name, NormKind kind, std::int64_t features,
                    bool bias) {
  return make_norm(builder, name, kind, Shape{features}, bias);
}

}  // namespace memfathom

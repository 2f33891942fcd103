// Normalization: norm layers with their parameters.
#pragma once

#include <cstdint>
#include <string_view>

#include "kernels/framework/layers/builder.h"
#include "kernels/framework/ops/norm.h"

namespace memfathom {

struct LayerNorm {
  Tensor weight, bias;
  double eps = 1e-5;

  Tensor operator()(const Tensor& x) const { return layer_norm(x, weight, bias, eps); }
};

struct RmsNorm {
  Tensor weight;
  bool python = true;  // in elementary operations, as Hugging Face models do
  double eps = 1e-6;

  Tensor operator()(const Tensor& x) const {
    return python ? rms_norm_python(x, weight, eps) : rms_norm(x, weight, eps);
  }
};

struct GroupNorm {
  Tensor weight, bias;
  std::int64_t groups = 32;
  double eps = 1e-5;

  Tensor operator()(const Tensor& x) const { return group_norm(x, groups, weight, bias, eps); }
};

struct BatchNorm {
  BatchNormState state;
  Tensor batches_tracked;
  double eps = 1e-5;

  Tensor operator()(const Tensor& x) const {
    return batch_norm(x, state, x.session().training, eps);
  }
};

LayerNorm make_layer_norm(Builder& builder, std::string_view name, std::int64_t features,
                          bool bias = true);
RmsNorm make_rms_norm(Builder& builder, std::string_view name, std::int64_t features,
                      bool python = true);
GroupNorm make_group_norm(Builder& builder, std::string_view name, std::int64_t groups,
                          std::int64_t features);
BatchNorm make_batch_norm(Builder& builder, std::string_view name, std::int64_t features);

}  // namespace memfathom

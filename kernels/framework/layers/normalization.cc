#include "kernels/framework/layers/normalization.h"

#include "core/error.h"

namespace memfathom {

LayerNorm make_layer_norm(Builder& builder, std::string_view name, std::int64_t features,
                          bool bias) {
  const PathScope scope(builder, name);
  LayerNorm norm;
  norm.weight = builder.parameter("weight", {features});
  if (bias) norm.bias = builder.parameter("bias", {features});
  return norm;
}

RmsNorm make_rms_norm(Builder& builder, std::string_view name, std::int64_t features, bool python) {
  const PathScope scope(builder, name);
  RmsNorm norm;
  norm.weight = builder.parameter("weight", {features});
  norm.python = python;
  return norm;
}

GroupNorm make_group_norm(Builder& builder, std::string_view name, std::int64_t groups,
                          std::int64_t features) {
  const PathScope scope(builder, name);
  GroupNorm norm;
  norm.groups = groups;
  norm.weight = builder.parameter("weight", {features});
  norm.bias = builder.parameter("bias", {features});
  return norm;
}

BatchNorm make_batch_norm(Builder& builder, std::string_view name, std::int64_t features) {
  const PathScope scope(builder, name);
  BatchNorm norm;
  norm.state.weight = builder.parameter("weight", {features});
  norm.state.bias = builder.parameter("bias", {features});
  norm.state.running_mean = builder.buffer("running_mean", {features}, DType::kFp32);
  norm.state.running_var = builder.buffer("running_var", {features}, DType::kFp32);
  norm.batches_tracked = builder.buffer("num_batches_tracked", {}, DType::kInt64);
  return norm;
}

}  // namespace memfathom

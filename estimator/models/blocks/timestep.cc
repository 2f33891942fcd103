#include "estimator/models/blocks/timestep.h"

#include "kernels/framework/ops/activation.h"
#include "kernels/framework/ops/arithmetic.h"
#include "kernels/framework/ops/views.h"
#include "kernels/framework/tensor/session.h"

namespace memfathom {
namespace {

constexpr double kLogMaxPeriod = 9.210340371976184;

}  // namespace

Tensor timestep_embedding(const Tensor& timesteps, std::int64_t size, bool flip_sin_to_cos) {
  Session& session = timesteps.session();
  const std::int64_t half = size / 2;
  Tensor exponent;
  {
    const Tensor range = session.empty({half}, DType::kFp32);
    exponent = mul_scalar(range, -kLogMaxPeriod);
  }
  exponent = div_scalar(exponent, static_cast<double>(half));
  Tensor emb = exp(exponent);
  {
    const Tensor steps = to_dtype(unsqueeze(timesteps, 1), DType::kFp32);
    emb = mul(steps, unsqueeze(emb, 0));
  }
  emb = mul_scalar(emb, 1);
  {
    const Tensor sin = session.empty(emb.shape(), DType::kFp32);
    const Tensor cos = session.empty(emb.shape(), DType::kFp32);
    const Tensor parts[] = {sin, cos};
    emb = cat(parts, -1);
  }
  if (flip_sin_to_cos) {
    const Tensor parts[] = {slice(emb, 1, half, 2 * half), slice(emb, 1, 0, half)};
    emb = cat(parts, -1);
  }
  return emb;
}

Tensor TimestepEmbedding::operator()(const Tensor& sample) const {
  Tensor t = first(sample);
  t = activate(Activation::kSilu, t);
  return second(t);
}

TimestepEmbedding make_timestep_embedding(Builder& builder, std::string_view name, std::int64_t in,
                                          std::int64_t size) {
  const PathScope scope(builder, name);
  TimestepEmbedding embedding;
  embedding.first = make_linear(builder, "linear_1", in, size);
  embedding.second = make_linear(builder, "linear_2", size, size);
  return embedding;
}

}  // namespace memfathom

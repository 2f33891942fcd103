#include "estimator/models/families/multimodal/qwen_vl/qwen_block.h"

#include <cmath>
#include <utility>

#include "kernels/framework/ops/arithmetic.h"
#include "kernels/framework/ops/views.h"

namespace memfathom {

QwenVisionBlock::QwenVisionBlock(Builder& builder, const QwenVisionConfig& cfg,
                                 const ModelSettings& settings)
    : config_(cfg) {
  style_.implementation = settings.attention;
  style_.causal = false;
  style_.scale = 1 / std::sqrt(static_cast<double>(cfg.head_size()));
  first_norm_ = make_norm(builder, "norm1", cfg.norm, cfg.hidden);
  second_norm_ = make_norm(builder, "norm2", cfg.norm, cfg.hidden);
  {
    const PathScope scope(builder, "attn");
    qkv_ = make_linear(builder, "qkv", cfg.hidden, 3 * cfg.hidden);
    output_ = make_linear(builder, "proj", cfg.hidden, cfg.hidden);
  }
  const PathScope scope(builder, "mlp");
  if (cfg.gated) gate_ = make_linear(builder, "gate_proj", cfg.hidden, cfg.ffn);
  first_ = make_linear(builder, cfg.gated ? "up_proj" : cfg.first, cfg.hidden, cfg.ffn);
  second_ = make_linear(builder, cfg.gated ? "down_proj" : cfg.second, cfg.ffn, cfg.hidden);
}

Tensor QwenVisionBlock::operator()(const Tensor& x, const Pass& pass) const {
  Tensor hidden = add(x, attention(first_norm_(x), pass.rotary));
  return add(hidden, mlp(second_norm_(hidden)));
}

Tensor QwenVisionBlock::mlp(const Tensor& x) const {
  if (!config_.gated) return second_(activate(config_.activation, first_(x)));
  const Tensor gate = activate(config_.activation, gate_(x));
  return second_(mul(gate, first_(x)));
}

Tensor QwenVisionBlock::attention(const Tensor& x, const RotaryTables& tables) const {
  const std::int64_t patches = x.size(0);
  Tensor q, k, v;
  {
    const Tensor qkv = reshape(qkv_(x), {patches, 3, config_.heads, config_.head_size()});
    // [3, heads, patches, head size]
    const std::vector<Tensor> parts = unbind(permute(qkv, {1, 2, 0, 3}), 0);
    q = unsqueeze(parts[0], 0);
    k = unsqueeze(parts[1], 0);
    v = unsqueeze(parts[2], 0);
  }
  {
    const Tensor wide_q = to_dtype(q, DType::kFp32);
    const Tensor wide_k = to_dtype(k, DType::kFp32);
    const Tensor rotated_q = rotate(wide_q, tables);
    const Tensor rotated_k = rotate(wide_k, tables);
    q = to_dtype(rotated_q, v.dtype());
    k = to_dtype(rotated_k, v.dtype());
  }
  Tensor attended;
  if (style_.implementation == AttentionImplementation::kFlash) {
    attended = attend(style_, q, k, v, {}).output;  // one call for all lengths
  } else {
    const std::vector<Tensor> qs = split(q, *lengths_, 2);
    const std::vector<Tensor> ks = split(k, *lengths_, 2);
    const std::vector<Tensor> vs = split(v, *lengths_, 2);
    std::vector<Tensor> outputs;
    for (std::size_t i = 0; i < qs.size(); ++i)
      outputs.push_back(attend(style_, qs[i], ks[i], vs[i], {}).output);
    attended = cat(outputs, 1);
  }
  return output_(reshape(attended, {patches, -1}));
}

}  // namespace memfathom

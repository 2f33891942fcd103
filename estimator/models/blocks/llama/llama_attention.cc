#include "estimator/models/blocks/llama/llama_attention.h"

#include <utility>

#include "estimator/models/blocks/sequence_shards.h"
#include "kernels/framework/ops/arithmetic.h"
#include "kernels/framework/ops/views.h"

namespace memfathom {
namespace {

std::vector<NormLayer> make_head_norms(Builder& builder, const char* name, const LlamaPlan& plan,
                                       std::int64_t heads) {
  std::vector<NormLayer> norms;
  switch (plan.qk_norm) {
    case QkNorm::kNone: break;
    case QkNorm::kWhole:
      norms.push_back(make_norm(builder, name, plan.norm, heads * plan.head_size));
      break;
    case QkNorm::kPerHead: {
      const Shape one{plan.head_size};
      const Shape each{heads, plan.head_size};
      norms.push_back(
          make_norm(builder, name, plan.norm, plan.norm == NormKind::kLayerWide ? each : one));
      break;
    }
    case QkNorm::kEachHead: {
      for (std::int64_t i = 0; i < heads; ++i) {
        const PathScope scope(builder, name, i);
        norms.push_back(make_norm(builder, "norm", plan.norm, plan.head_size, false));
      }
    }
  }
  return norms;
}

// [b, heads, s, d]: every head through its own norm.
Tensor normed_apart(const Tensor& heads, const std::vector<NormLayer>& norms) {
  std::vector<Tensor> parts;
  parts.reserve(norms.size());
  const std::vector<std::int64_t> ones(norms.size(), 1);
  const std::vector<Tensor> pieces = split(heads, ones, 1);
  for (std::size_t i = 0; i < norms.size(); ++i) parts.push_back(norms[i](pieces[i]));
  return cat(parts, 1);
}

}  // namespace

LlamaAttention::LlamaAttention(Builder& builder, const LlamaPlan& plan, const LlamaLayer& layer,
                               const AttentionStyle& style)
    : plan_(plan), layer_(layer), style_(style) {
  const PathScope scope(builder, plan.names.attention);
  const std::int64_t q_width = plan.heads * plan.head_size;
  const std::int64_t kv_width = plan.kv_heads * plan.head_size;
  const LinearOptions biased{.bias = plan.qkv_bias};
  if (plan.fused_qkv) {
    output_ =
        make_linear(builder, plan.names.output, q_width, plan.hidden, {.bias = plan.output_bias});
    q_ = make_linear(builder, plan.names.qkv, plan.hidden, q_width + 2 * kv_width, biased);
  } else {
    q_ = make_linear(builder, "q_proj", plan.hidden, q_width, biased);
    k_ = make_linear(builder, "k_proj", plan.hidden, kv_width, biased);
    v_ = make_linear(builder, "v_proj", plan.hidden, kv_width, biased);
    output_ =
        make_linear(builder, plan.names.output, q_width, plan.hidden, {.bias = plan.output_bias});
  }
  q_norms_ = make_head_norms(builder, "q_norm", plan, plan.heads);
  k_norms_ = make_head_norms(builder, "k_norm", plan, plan.kv_heads);
  if (plan.sinks) style_.sinks = builder.parameter("sinks", {plan.heads});
  if (plan.rotary_in_layers)
    rotary_.emplace(builder, plan.rotary, plan.rotary_form, plan.max_positions);
}

Attended LlamaAttention::operator()(const Tensor& x, const Pass& pass, std::size_t index) const {
  Tensor q;
  Tensor k;
  Tensor v;
  project(x, q, k, v);
  RotaryTables own;
  if (rotary_) own = rotary_->tables(pass.positions, x.dtype());
  NamedParts named;
  if (layer_.turned) {
    const bool second = plan_.two_rotaries && layer_.windowed;
    const RotaryTables& tables = second ? pass.window_rotary : pass.rotary;
    named = turn(q, k, rotary_ ? own : tables);
  }
  const bool windowed = plan_.mixes_windows ? layer_.windowed : plan_.window > 0;
  if (pass.cache != nullptr) pass.cache->update(index, k, v, windowed ? plan_.window : 0);
  const Tensor& mask = plan_.mixes_windows && windowed ? pass.window_mask : pass.mask;
  Attended attended = attend(style_, q, k, v, mask);
  attended.output = merge_heads(attended.output);
  attended.output = scatter_positions(output_(attended.output), plan_.shards);
  return attended;
}

void LlamaAttention::project(const Tensor& x, Tensor& q, Tensor& k, Tensor& v) const {
  if (plan_.fused_qkv) {
    const Tensor qkv = linear_over_shards(q_, x, plan_.shards);
    const std::int64_t q_end = plan_.heads * plan_.head_size;
    const std::int64_t k_end = q_end + plan_.kv_heads * plan_.head_size;
    q = split_heads(slice(qkv, -1, 0, q_end), plan_.head_size);
    k = split_heads(slice(qkv, -1, q_end, k_end), plan_.head_size);
    v = split_heads(slice(qkv, -1, k_end, qkv.size(-1)), plan_.head_size);
    return;
  }
  const auto read = [&](const Linear& layer) { return linear_over_shards(layer, x, plan_.shards); };
  q = normed(read(q_), q_norms_);
  k = normed(read(k_), k_norms_);
  v = split_heads(read(v_), plan_.head_size);
}

Tensor LlamaAttention::normed(const Tensor& projected, const std::vector<NormLayer>& norms) const {
  switch (plan_.qk_norm) {
    case QkNorm::kNone: return split_heads(projected, plan_.head_size);
    case QkNorm::kWhole: return split_heads(norms.front()(projected), plan_.head_size);
    case QkNorm::kEachHead: return normed_apart(split_heads(projected, plan_.head_size), norms);
    case QkNorm::kPerHead: break;
  }
  const Tensor heads = view(projected, {projected.size(0), projected.size(1), -1, plan_.head_size});
  return transpose(norms.front()(heads), 1, 2);
}

NamedParts LlamaAttention::turn(Tensor& q, Tensor& k, const RotaryTables& tables) const {
  const auto both = [&](const auto& turned) {
    Tensor turned_q = turned(q);
    Tensor turned_k = turned(k);
    turned_q = to_dtype(turned_q, q.dtype());
    turned_k = to_dtype(turned_k, k.dtype());
    q = std::move(turned_q);
    k = std::move(turned_k);
  };
  switch (plan_.turning) {
    case Turning::kNamedParts: return turn_named_parts(q, k, tables);
    case Turning::kPairs: turn_pairs(q, k, tables); return {};
    case Turning::kHalves: {
      const auto turned = [&](const Tensor& x) {
        const std::vector<Tensor> halves = chunk(x, 2, -1);
        return rotate_apart(halves[0], halves[1], tables);
      };
      Tensor turned_q = turned(q);
      k = turned(k);
      q = std::move(turned_q);
      return {};
    }
    case Turning::kJoined: {
      Tensor turned = rotate_and_join(q, tables);
      k = rotate_and_join(k, tables);
      q = std::move(turned);
      return {};
    }
    case Turning::kWideTables: both([&](const Tensor& x) { return rotate(x, tables); }); return {};
    case Turning::kWideHeads: {
      const DType narrow = q.dtype();
      q = to_dtype(q, DType::kFp32);
      k = to_dtype(k, DType::kFp32);
      Tensor turned_q = rotate(q, tables);
      Tensor turned_k = rotate(k, tables);
      turned_q = to_dtype(turned_q, narrow);
      k = to_dtype(turned_k, narrow);
      q = std::move(turned_q);
      return {};
    }
    case Turning::kPlain: break;
  }
  Tensor turned = rotate(q, tables);
  k = rotate(k, tables);
  q = std::move(turned);
  return {};
}

}  // namespace memfathom

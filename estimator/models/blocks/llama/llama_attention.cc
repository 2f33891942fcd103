#include "estimator/models/blocks/llama/llama_attention.h"

#include <utility>

#include "estimator/models/blocks/sequence_shards.h"
#include "kernels/framework/ops/arithmetic.h"
#include "kernels/framework/ops/views.h"

namespace memfathom {
namespace {

std::vector<NormLayer> make_head_norms(Builder& builder, const char* name, const LlamaConfig& cfg,
                                       std::int64_t heads) {
  std::vector<NormLayer> norms;
  switch (cfg.qk_norm) {
    case QkNorm::kNone: break;
    case QkNorm::kWhole:
      norms.push_back(make_norm(builder, name, cfg.norm, heads * cfg.head_size));
      break;
    case QkNorm::kPerHead: {
      const Shape one{cfg.head_size};
      const Shape each{heads, cfg.head_size};
      norms.push_back(
          make_norm(builder, name, cfg.norm, cfg.norm == NormKind::kLayerWide ? each : one));
      break;
    }
    case QkNorm::kEachHead: {
      for (std::int64_t i = 0; i < heads; ++i) {
        const PathScope scope(builder, name, i);
        norms.push_back(make_norm(builder, "norm", cfg.norm, cfg.head_size, false));
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

// In fp32, and cast back.
void rotate_wide(Tensor& q, Tensor& k, const RotaryTables& tables) {
  const DType narrow = q.dtype();
  q = to_dtype(q, DType::kFp32);
  k = to_dtype(k, DType::kFp32);
  Tensor rotated_q = rotate(q, tables);
  Tensor rotated_k = rotate(k, tables);
  rotated_q = to_dtype(rotated_q, narrow);
  k = to_dtype(rotated_k, narrow);
  q = std::move(rotated_q);
}

}  // namespace

LlamaAttention::LlamaAttention(Builder& builder, const LlamaConfig& cfg, const LlamaLayer& layer,
                               const AttentionStyle& style)
    : config_(cfg), layer_(layer), style_(style) {
  const PathScope scope(builder, cfg.names.attention);
  const std::int64_t q_width = cfg.heads * cfg.head_size;
  const std::int64_t kv_width = cfg.kv_heads * cfg.head_size;
  const LinearOptions biased{.bias = cfg.qkv_bias};
  if (cfg.fused_qkv) {
    output_ =
        make_linear(builder, cfg.names.output, q_width, cfg.hidden, {.bias = cfg.output_bias});
    q_ = make_linear(builder, cfg.names.qkv, cfg.hidden, q_width + 2 * kv_width, biased);
  } else {
    q_ = make_linear(builder, "q_proj", cfg.hidden, q_width, biased);
    k_ = make_linear(builder, "k_proj", cfg.hidden, kv_width, biased);
    v_ = make_linear(builder, "v_proj", cfg.hidden, kv_width, biased);
    output_ =
        make_linear(builder, cfg.names.output, q_width, cfg.hidden, {.bias = cfg.output_bias});
  }
  q_norms_ = make_head_norms(builder, "q_norm", cfg, cfg.heads);
  k_norms_ = make_head_norms(builder, "k_norm", cfg, cfg.kv_heads);
  if (cfg.sinks) style_.sinks = builder.parameter("sinks", {cfg.heads});
  if (cfg.rotary_in_layers)
    rotary_.emplace(builder, cfg.rotary, cfg.rotary_form, cfg.max_positions);
}

Attended LlamaAttention::operator()(const Tensor& x, const Pass& pass, std::size_t index) const {
  Tensor q;
  Tensor k;
  Tensor v;
  project(x, q, k, v);
  RotaryTables own;
  if (rotary_) own = rotary_->tables(pass.positions, x.dtype());
  NamedParts named;
  if (layer_.rotated) {
    const bool second = config_.two_rotaries && layer_.windowed;
    const RotaryTables& tables = second ? pass.window_rotary : pass.rotary;
    named = turn(q, k, rotary_ ? own : tables);
  }
  if (config_.norms_rotated) {
    q = q_norms_.front()(q);
    k = k_norms_.front()(k);
  }
  if (config_.scaled_queries) {
    const Tensor factor = x.session().empty({1, 1, q.size(2), 1}, q.dtype());
    q = mul(q, factor);
  }
  const bool windowed = config_.mixes_windows ? layer_.windowed : config_.window > 0;
  if (pass.cache != nullptr) pass.cache->update(index, k, v, windowed ? config_.window : 0);
  const Tensor& mask = config_.mixes_windows && windowed ? pass.window_mask : pass.mask;
  Attended attended = attend(style_, q, k, v, mask);
  attended.output = merge_heads(attended.output);
  attended.output = scatter_positions(output_(attended.output), config_.shards);
  return attended;
}

void LlamaAttention::project(const Tensor& x, Tensor& q, Tensor& k, Tensor& v) const {
  if (config_.fused_qkv) {
    const Tensor qkv = linear_over_shards(q_, x, config_.shards);
    const std::int64_t q_end = config_.heads * config_.head_size;
    const std::int64_t k_end = q_end + config_.kv_heads * config_.head_size;
    q = split_heads(slice(qkv, -1, 0, q_end), config_.head_size);
    k = split_heads(slice(qkv, -1, q_end, k_end), config_.head_size);
    v = split_heads(slice(qkv, -1, k_end, qkv.size(-1)), config_.head_size);
    return;
  }
  const auto read = [&](const Linear& layer) {
    return linear_over_shards(layer, x, config_.shards);
  };
  q = normed(read(q_), q_norms_);
  k = normed(read(k_), k_norms_);
  v = split_heads(read(v_), config_.head_size);
}

Tensor LlamaAttention::normed(const Tensor& projected, const std::vector<NormLayer>& norms) const {
  if (config_.norms_rotated) return split_heads(projected, config_.head_size);
  switch (config_.qk_norm) {
    case QkNorm::kNone: return split_heads(projected, config_.head_size);
    case QkNorm::kWhole: return split_heads(norms.front()(projected), config_.head_size);
    case QkNorm::kEachHead: return normed_apart(split_heads(projected, config_.head_size), norms);
    case QkNorm::kPerHead: break;
  }
  const Tensor heads =
      view(projected, {projected.size(0), projected.size(1), -1, config_.head_size});
  return transpose(norms.front()(heads), 1, 2);
}

NamedParts LlamaAttention::turn(Tensor& q, Tensor& k, const RotaryTables& tables) const {
  const auto both = [&](const auto& rotated) {
    Tensor rotated_q = rotated(q);
    Tensor rotated_k = rotated(k);
    rotated_q = to_dtype(rotated_q, q.dtype());
    rotated_k = to_dtype(rotated_k, k.dtype());
    q = std::move(rotated_q);
    k = std::move(rotated_k);
  };
  switch (config_.rotary_style) {
    case RotaryStyle::kNamedParts: return rotate_named_parts(q, k, tables);
    case RotaryStyle::kPairs: rotate_pairs(q, k, tables); return {};
    case RotaryStyle::kWholePairs: {
      const RotaryTables spread = spread_over_pairs(tables);
      Tensor rotated = rotate(q, spread);
      k = rotate(k, spread);
      q = std::move(rotated);
      return {};
    }
    case RotaryStyle::kWidePairs: rotate_wide(q, k, spread_over_pairs(tables)); return {};
    case RotaryStyle::kHalves: {
      const auto rotated = [&](const Tensor& x) {
        const std::vector<Tensor> halves = chunk(x, 2, -1);
        return rotate_apart(halves[0], halves[1], tables);
      };
      Tensor rotated_q = rotated(q);
      k = rotated(k);
      q = std::move(rotated_q);
      return {};
    }
    case RotaryStyle::kJoined: {
      Tensor rotated = rotate_and_join(q, tables);
      k = rotate_and_join(k, tables);
      q = std::move(rotated);
      return {};
    }
    case RotaryStyle::kWideTables:
      both([&](const Tensor& x) { return rotate(x, tables); });
      return {};
    case RotaryStyle::kWideHeads: rotate_wide(q, k, tables); return {};
    case RotaryStyle::kPlain: break;
  }
  Tensor rotated = rotate(q, tables);
  k = rotate(k, tables);
  q = std::move(rotated);
  return {};
}

}  // namespace memfathom

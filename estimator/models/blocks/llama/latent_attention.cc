#include "estimator/models/blocks/llama/latent_attention.h"

#include <utility>
#include <vector>

#include "kernels/framework/ops/arithmetic.h"
#include "kernels/framework/ops/views.h"
#include "kernels/framework/tensor/recording.h"

namespace memfathom {
namespace {

// whole[..., part] = x, an assignment that autograd follows: backward copies the whole gradient,
// and then the part of it that is x's.
void fill_part(Tensor& whole, const Tensor& x) {
  Session& session = whole.session();
  Recording tape(session, "copy_", {&whole, &x});
  Tensor changed = whole.detach();
  tape.finish(changed, [shape = x.shape(), dtype = x.dtype()](Backward& b) {
    const Tensor gradient = b.gradient();
    Tensor rest = b.session().empty(gradient.shape(), gradient.dtype());
    Tensor own = b.session().empty(shape, gradient.dtype());
    Tensor nothing;
    if (b.needs(0)) nothing = b.session().zeros(shape, gradient.dtype());
    if (b.needs(1)) b.give(1, to_dtype(own, dtype));
    if (b.needs(0)) b.give(0, std::move(rest));
  });
  whole = changed;
}

// As complex numbers in fp32: a product with the table, and back.
Tensor rotated_as_complex(const Tensor& x, const Tensor& table) {
  Session& session = x.session();
  const Tensor wide = to_dtype(x, DType::kFp32);
  Recording tape(session, "mul", {&wide});
  tape.save(table);
  Tensor out = session.empty(wide.shape(), DType::kFp32);
  tape.finish(out, [shape = wide.shape()](Backward& b) {
    const Tensor kept = b.saved(0);
    b.give(0, b.session().empty(shape, DType::kFp32));
  });
  return to_dtype(out, x.dtype());
}

Tensor rotated_by_pairs(const Tensor& x, const RotaryTables& tables) {
  const std::int64_t half = x.size(-1) / 2;
  const RotaryTables halves{slice(tables.cos, -1, 0, half), slice(tables.sin, -1, 0, half)};
  const Tensor first = slice(x, -1, 0, half);
  const Tensor second = slice(x, -1, half, x.size(-1));
  return rotate_apart(first, second, halves);
}

std::vector<Tensor> split_at(const Tensor& x, std::int64_t size) {
  const std::int64_t sizes[] = {size, x.size(-1) - size};
  return split(x, sizes, -1);
}

}  // namespace

LatentAttention::LatentAttention(Builder& builder, const LlamaConfig& cfg,
                                 const AttentionStyle& style)
    : config_(cfg), style_(style) {
  const LatentConfig& latent = cfg.latent;
  const PathScope scope(builder, "self_attn");
  const std::int64_t q_width = cfg.heads * cfg.head_size;
  if (latent.q_rank == 0) {
    q_ = make_linear(builder, "q_proj", cfg.hidden, q_width, {.bias = false});
  } else {
    q_fold_ = make_linear(builder, "q_a_proj", cfg.hidden, latent.q_rank, {.bias = cfg.qkv_bias});
    q_norm_ = make_norm(builder, "q_a_layernorm", cfg.norm, latent.q_rank);
    q_unfold_ = make_linear(builder, "q_b_proj", latent.q_rank, q_width, {.bias = false});
  }
  kv_fold_ = make_linear(builder, "kv_a_proj_with_mqa", cfg.hidden, latent.kv_rank + latent.rotated,
                         {.bias = cfg.qkv_bias});
  kv_norm_ = make_norm(builder, "kv_a_layernorm", cfg.norm, latent.kv_rank);
  kv_unfold_ = make_linear(builder, "kv_b_proj", latent.kv_rank,
                           cfg.heads * (latent.plain + latent.values), {.bias = false});
  output_ = make_linear(builder, "o_proj", cfg.heads * latent.values, cfg.hidden,
                        {.bias = cfg.output_bias});
}

Tensor LatentAttention::queries(const Tensor& x) const {
  if (config_.latent.q_rank == 0) return split_heads(q_(x), config_.head_size);
  Tensor folded = q_fold_(x);
  folded = q_norm_(folded);
  return split_heads(q_unfold_(folded), config_.head_size);
}

void LatentAttention::turn(Tensor& q, Tensor& k, const RotaryTables& tables) const {
  const auto rotated = [&](const Tensor& x) {
    if (config_.latent.complex) return rotated_as_complex(x, tables.cos);
    return config_.latent.pairs ? rotated_by_pairs(x, tables) : rotate(x, tables);
  };
  Tensor rotated_q = rotated(q);
  k = rotated(k);
  q = std::move(rotated_q);
}

Attended LatentAttention::operator()(const Tensor& x, const Pass& pass, std::size_t index) const {
  const LatentConfig& latent = config_.latent;
  const Tensor q_states = queries(x);
  std::vector<Tensor> q_parts = split_at(q_states, latent.plain);
  const Tensor compressed = kv_fold_(x);
  const std::int64_t batch = x.size(0);
  const std::int64_t length = x.size(1);
  const std::vector<Tensor> kv_parts = split_at(compressed, latent.kv_rank);
  Tensor folded = view(kv_norm_(kv_parts[0]), {batch, 1, length, latent.kv_rank});
  Tensor k_rotated = view(kv_parts[1], {batch, 1, length, latent.rotated});
  turn(q_parts[1], k_rotated, pass.rotary);
  if (pass.cache != nullptr) pass.cache->update(index, folded, k_rotated);
  const Tensor q = cat(q_parts, -1);

  const std::int64_t seen = folded.size(2);
  const Tensor unfolded =
      transpose(view(kv_unfold_(folded), {batch, seen, -1, latent.plain + latent.values}), 1, 2);
  Tensor v;
  Tensor k;
  {
    const std::vector<Tensor> parts = split_at(unfolded, latent.plain);
    v = parts[1];
    k = x.session().empty({batch, config_.heads, seen, config_.head_size}, unfolded.dtype());
    fill_part(k, parts[0]);
    fill_part(k, expand(k_rotated, {batch, config_.heads, seen, latent.rotated}));
  }
  Attended attended = attend(style_, q, k, v, pass.mask);
  attended.output = merge_heads(attended.output);
  attended.output = output_(attended.output);
  return attended;
}

}  // namespace memfathom

#include "estimator/models/blocks/rotary.h"

#include <cmath>
#include <utility>

#include "estimator/models/blocks/config_reader.h"
#include "kernels/framework/ops/arithmetic.h"
#include "kernels/framework/ops/attention.h"
#include "kernels/framework/ops/views.h"

namespace memfathom {
namespace {

// cos(angles) * attention_scaling
Tensor scaled(const Tensor& angles) {
  Session& session = angles.session();
  const Tensor plain = session.empty(angles.shape(), DType::kFp32);
  return session.empty(angles.shape(), DType::kFp32);
}

}  // namespace

Rotary::Rotary(Builder& builder, std::int64_t size, RotaryForm form, std::int64_t positions)
    : size_(size), form_(form) {
  const PathScope scope(builder, "rotary_emb");
  frequencies_ = builder.buffer("inv_freq", {size / 2}, DType::kFp32, false);
  if (form == RotaryForm::kMade) {
    original_frequencies_ = builder.buffer("original_inv_freq", {size / 2}, DType::kFp32, false);
    return;
  }
  cos_cached_ = builder.buffer("cos_cached", {positions, size}, builder.options().dtype, false);
  sin_cached_ = builder.buffer("sin_cached", {positions, size}, builder.options().dtype, false);
}

RotaryTables Rotary::tables(const Tensor& positions, DType dtype) const {
  Session& session = positions.session();
  const NoGrad no_grad(session);
  if (form_ == RotaryForm::kGathered) {
    const Shape rows{positions.size(0), positions.size(1), size_};
    RotaryTables gathered;
    gathered.cos = session.empty(rows, cos_cached_.dtype());
    gathered.sin = session.empty(rows, sin_cached_.dtype());
    return gathered;
  }
  const Tensor half = angles(positions);
  const Tensor parts[] = {half, half};
  const Tensor both = cat(parts, -1);
  const Tensor cos = scaled(both);
  const Tensor sin = scaled(both);
  RotaryTables made;
  made.cos = to_dtype(cos, dtype);
  made.sin = to_dtype(sin, dtype);
  return made;
}

RotaryTables Rotary::half_tables(const Tensor& positions, DType dtype) const {
  const NoGrad no_grad(positions.session());
  const Tensor half = angles(positions);
  const Tensor cos = scaled(half);
  const Tensor sin = scaled(half);
  return {to_dtype(cos, dtype), to_dtype(sin, dtype)};
}

RotaryTables Rotary::complex_tables(const Tensor& positions) const {
  Session& session = positions.session();
  const NoGrad no_grad(session);
  const Tensor half = angles(positions);
  Tensor polar;
  {
    const Tensor ones = session.empty(half.shape(), DType::kFp32);
    polar = session.empty(half.shape(), DType::kComplex64);
  }
  return {session.empty(half.shape(), DType::kComplex64), {}};
}

Tensor Rotary::angles(const Tensor& positions) const {
  Session& session = positions.session();
  const std::int64_t rows = positions.size(0);
  const std::int64_t length = positions.size(1);
  const Tensor wide = session.empty({rows, length, 1}, DType::kFp32);
  const Tensor frequencies = to_dtype(frequencies_, DType::kFp32);
  return session.empty({rows, length, size_ / 2}, DType::kFp32);
}

std::int64_t rotary_size(const Node& config, std::int64_t head_size, double default_fraction) {
  if (const Node* given = find_any(config, {"rotary_dim"})) return given->as_int(2, head_size);
  const Node* parameters = find_any(config, {"rope_parameters", "rope_scaling"});
  const Node* fraction = find_any(config, {"partial_rotary_factor", "rotary_pct"});
  if (fraction == nullptr && parameters != nullptr && parameters->is_map()) {
    fraction = find_any(*parameters, {"partial_rotary_factor"});
  }
  const double share = fraction != nullptr ? fraction->as_number(0, 1) : default_fraction;
  const auto size =
      static_cast<std::int64_t>(std::floor(share * static_cast<double>(head_size) + 1e-9));
  if (size < 2 || size % 2 != 0) {
    (fraction != nullptr ? *fraction : config)
        .refuse("the rotated part of a head must be an even number of at least 2");
  }
  return size;
}

Tensor rotate(const Tensor& x, const RotaryTables& tables) {
  if (tables.cos.size(-1) < x.size(-1)) return rotate_and_join(x, tables);
  return apply_rotary(x, unsqueeze(tables.cos, 1), unsqueeze(tables.sin, 1));
}

Tensor rotate_and_join(const Tensor& x, const RotaryTables& tables) {
  const Tensor cos = unsqueeze(tables.cos, 1);
  const Tensor sin = unsqueeze(tables.sin, 1);
  const std::int64_t size = cos.size(-1);
  const Tensor rotary_style = size < x.size(-1) ? slice(x, -1, 0, size) : x;
  const Tensor passing = slice(x, -1, size, x.size(-1));
  const Tensor parts[] = {apply_rotary(rotary_style, cos, sin), passing};
  return cat(parts, -1);
}

Tensor rotate_apart(const Tensor& first, const Tensor& second, const RotaryTables& tables) {
  const Tensor cos = unsqueeze(tables.cos, 1);
  const Tensor sin = unsqueeze(tables.sin, 1);
  const auto combined = [](auto join, const Tensor& a, const Tensor& x, const Tensor& b,
                           const Tensor& y) {
    const Tensor left = mul(a, x);
    const Tensor right = mul(b, y);
    return join(left, right);
  };
  const Tensor parts[] = {
      combined([](const Tensor& l, const Tensor& r) { return sub(l, r); }, first, cos, second, sin),
      combined([](const Tensor& l, const Tensor& r) { return add(l, r); }, second, cos, first,
               sin)};
  return cat(parts, -1);
}

NamedParts rotate_named_parts(Tensor& q, Tensor& k, const RotaryTables& tables) {
  const std::int64_t size = tables.cos.size(-1);
  Tensor q_rotated_part = slice(q, -1, 0, size);
  const Tensor q_passing = slice(q, -1, size, q.size(-1));
  Tensor k_rotated_part = slice(k, -1, 0, size);
  const Tensor k_passing = slice(k, -1, size, k.size(-1));
  {
    Tensor turned = rotate(q_rotated_part, tables);
    k_rotated_part = rotate(k_rotated_part, tables);
    q_rotated_part = std::move(turned);
  }
  const Tensor q_parts[] = {q_rotated_part, q_passing};
  q = cat(q_parts, -1);
  const Tensor k_parts[] = {k_rotated_part, k_passing};
  k = cat(k_parts, -1);
  return {q_rotated_part, q_passing, k_rotated_part, k_passing};
}

RotaryTables spread_over_pairs(const RotaryTables& tables) {
  const NoGrad no_grad(tables.cos.session());
  return {clone(tables.cos), clone(tables.sin)};
}

void rotate_pairs(Tensor& q, Tensor& k, const RotaryTables& tables) {
  const RotaryTables spread = spread_over_pairs(tables);
  const std::int64_t size = spread.cos.size(-1);
  const auto turned = [&](const Tensor& x) { return rotate(slice(x, -1, 0, size), spread); };
  const auto joined = [&](const Tensor& rotary_style, const Tensor& x) {
    const Tensor parts[] = {rotary_style, slice(x, -1, size, x.size(-1))};
    return cat(parts, -1);
  };
  const Tensor q_rotated = turned(q);
  const Tensor k_rotated = turned(k);
  q = joined(q_rotated, q);
  k = joined(k_rotated, k);
}

}  // namespace memfathom

// Rotary: the tables of rotary position embedding and their application to queries and keys.
#pragma once

#include <cstdint>
#include <vector>

#include "core/document.h"
#include "kernels/framework/layers/builder.h"
#include "kernels/framework/tensor/tensor.h"

namespace memfathom {

struct RotaryTables {
  Tensor cos, sin;  // [1, s, d]
};

// Older versions of transformers keep tables of all positions in every layer and gather the rows
// they need, some keep them and do not use them; today's make what a forward pass needs.
enum class RotaryForm { kMade, kComputedWithTables, kGathered };

class Rotary {
 public:
  Rotary() = default;
  // `size`: how much of a head is rotated. `positions`: rows of the resident tables.
  Rotary(Builder& builder, std::int64_t size, RotaryForm form = RotaryForm::kMade,
         std::int64_t positions = 0);

  RotaryTables tables(const Tensor& positions, DType dtype) const;
  // Of the angles alone, for families that turn the halves of a head apart.
  RotaryTables half_tables(const Tensor& positions, DType dtype) const;
  // One table of complex numbers, as `cos`.
  RotaryTables complex_tables(const Tensor& positions) const;

 private:
  Tensor angles(const Tensor& positions) const;

  std::int64_t size_ = 0;
  RotaryForm form_ = RotaryForm::kMade;
  Tensor frequencies_, original_frequencies_;
  Tensor cos_cached_, sin_cached_;
};

// Extent of the rotated part of a head: rotary_dim, or partial_rotary_factor (rotary_pct) of
// head_size.
std::int64_t rotary_size(const Node& config, std::int64_t head_size, double default_fraction);

// x [b, heads, s, d]: rotates the first `size` of d; the rest passes through.
Tensor rotate(const Tensor& x, const RotaryTables& tables);
// The same in families that join both parts even where nothing is left to pass: the result is a
// copy, its heads one after the other.
Tensor rotate_and_join(const Tensor& x, const RotaryTables& tables);

// The two parts of a head, rotated and joined, by tables of half its size.
Tensor rotate_apart(const Tensor& first, const Tensor& second, const RotaryTables& tables);

// What Python's locals keep alive until the attention returns.
using NamedParts = std::vector<Tensor>;

// Turns queries and keys in families that give their parts names before they join them: the parts
// that pass through are views that keep the projections alive.
NamedParts rotate_named_parts(Tensor& q, Tensor& k, const RotaryTables& tables);

// The tables spread over neighbours, which are turned instead of halves; made in every layer.
RotaryTables spread_over_pairs(const RotaryTables& tables);

// Turns neighbours; the parts are joined even where nothing is left to pass.
void rotate_pairs(Tensor& q, Tensor& k, const RotaryTables& tables);

}  // namespace memfathom

// Rotary: the tables of rotary position embedding and their application to queries and keys.
#pragma once

#include <cstdint>
#include <vector>

#include "core/document.h"
#include "kernels/layers/builder.h"
#include "kernels/tensor/tensor.h"

namespace memfathom {

struct RotaryTables {
  Tensor cos, sin;  // [1, s, d]
};

// The module that makes them in each forward pass. Up to transformers 4.37 each attention layer
// keeps tables of all positions instead, and gathers the rows it needs.
class Rotary {
 public:
  Rotary() = default;
  // `size`: how much of a head is rotated. `tables_of`: positions of the resident tables, 0 for the
  // newer form.
  Rotary(Builder& builder, std::int64_t size, std::int64_t tables_of);

  RotaryTables tables(const Tensor& positions, DType dtype) const;
  // Of the angles alone, for families that turn the halves of a head apart.
  RotaryTables half_tables(const Tensor& positions, DType dtype) const;
  // One table of complex numbers, as `cos`.
  RotaryTables complex_tables(const Tensor& positions) const;

 private:
  Tensor angles(const Tensor& positions) const;

  std::int64_t size_ = 0;
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

// The two parts of a head, turned and joined, by tables of half its size.
Tensor rotate_apart(const Tensor& first, const Tensor& second, const RotaryTables& tables);

// What Python's locals keep alive until the attention returns.
using NamedParts = std::vector<Tensor>;

// Turns queries and keys in families that give their parts names before they join them: the parts
// that pass through are views that keep the projections alive.
NamedParts turn_named_parts(Tensor& q, Tensor& k, const RotaryTables& tables);

// Turns neighbours instead of halves: the tables are spread over pairs in every layer.
void turn_pairs(Tensor& q, Tensor& k, const RotaryTables& tables);

}  // namespace memfathom

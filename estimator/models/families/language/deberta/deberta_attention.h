// DebertaAttention: scores of words with words, of words with distances and of distances with
// words.
#pragma once

#include <cstdint>

#include "estimator/models/blocks/pass.h"
#include "kernels/framework/layers/builder.h"
#include "kernels/framework/layers/linear.h"

namespace memfathom {

struct DebertaDistances {
  bool relative = false;    // whether distances are looked at
  bool to_keys = false;     // c2p: words with distances
  bool to_queries = false;  // p2c: distances with words
  bool shared = false;      // by the matrices of the words
  std::int64_t span = 0;    // rows of the table to each side
};

class DebertaAttention {
 public:
  DebertaAttention(Builder& builder, std::int64_t hidden, std::int64_t heads,
                   const DebertaDistances& distances, double dropout, double weights_dropout);

  // `pass`: the mask [b, 1, s, s], the distances [1, 1, s, s] as positions and the table of their
  // embeddings as biases.
  Tensor operator()(const Tensor& x, const Pass& pass) const;

 private:
  Tensor in_heads(const Tensor& projected) const;
  Tensor repeated(const Tensor& projected, std::int64_t batch) const;
  Tensor by_distance(const Tensor& q, const Tensor& k, const Pass& pass) const;

  std::int64_t heads_, head_size_;
  DebertaDistances distances_;
  double dropout_, weights_dropout_, scale_;
  Linear q_, k_, v_, distance_q_, distance_k_;
};

}  // namespace memfathom

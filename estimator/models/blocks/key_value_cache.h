// KeyValueCache: the keys and values that generation keeps, grown as the library's cache classes
// grow them.
#pragma once

#include <cstdint>
#include <vector>

#include "estimator/models/blocks/settings.h"
#include "kernels/framework/tensor/tensor.h"

namespace memfathom {

class KeyValueCache {
 public:
  // `capacity`: tokens a static cache is made for.
  KeyValueCache(KvCache kind, std::int64_t layers, std::int64_t capacity)
      : kind_(kind), capacity_(capacity), layers_(static_cast<std::size_t>(layers)) {}

  // Tokens seen so far.
  std::int64_t length() const { return length_; }
  // A static cache hands out all its positions in a decoding step, and a mask says which count.
  bool needs_mask(std::int64_t new_tokens) const {
    return kind_ == KvCache::kStatic && new_tokens == 1;
  }
  // Keys that new tokens see in a layer with this window; 0: without one.
  std::int64_t key_length(std::int64_t new_tokens, std::int64_t window) const {
    if (needs_mask(new_tokens)) return capacity_;
    const bool slides = window > 0 && kind_ == KvCache::kDynamic && length_ >= window;
    return (slides ? window - 1 : length_) + new_tokens;
  }

  // k and v [b, heads, s, d] of new tokens become those the attention of this layer is to see. Of a
  // layer with a sliding window only what the next token sees is kept.
  void update(std::size_t layer, Tensor& k, Tensor& v, std::int64_t window = 0);
  // The tensors that update() replaces in this layer.
  void add_tensors(std::size_t layer, std::vector<Tensor*>& tensors) {
    tensors.push_back(&layers_[layer].keys);
    tensors.push_back(&layers_[layer].values);
  }
  // What the next update brings counts as if `tokens` had come before it, one by one.
  void skip(std::int64_t tokens) {
    length_ += tokens;
    skipped_ += tokens;
  }
  // The last layer has been updated: the new tokens count, and what a tuple cache held before goes.
  void advance(std::int64_t new_tokens);

 private:
  struct Layer {
    Tensor keys, values;
  };

  // The new tokens with those that were skipped, which a sliding window may have left behind.
  Tensor with_skipped(const Tensor& fresh, const Tensor& cached, std::int64_t window) const;

  KvCache kind_;
  std::int64_t capacity_;
  std::int64_t length_ = 0;
  std::int64_t skipped_ = 0;  // tokens that are counted and not yet in the layers
  std::vector<Layer> layers_;
  std::vector<Layer>
      before_;  // of a tuple cache: the caller's tuple, until the forward pass returns
};

}  // namespace memfathom

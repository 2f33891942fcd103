#include "estimator/models/blocks/key_value_cache.h"

#include <algorithm>
#include <utility>

#include "kernels/framework/ops/arithmetic.h"
#include "kernels/framework/ops/views.h"
#include "kernels/framework/tensor/session.h"

namespace memfathom {
namespace {

// torch.cat of what is cached (nothing at first, which still copies) and the new tokens. The cache
// begins in the keys' type, which autocast's rotation leaves at fp32, and cat widens the values.
Tensor grown(const Tensor& cached, const Tensor& fresh, DType dtype) {
  if (!cached) {
    if (fresh.dtype() != dtype) return to_dtype(fresh, dtype);
    const Tensor parts[] = {fresh};
    return cat(parts, 2);
  }
  const Tensor parts[] = {cached, to_dtype(fresh, dtype)};
  return cat(parts, 2);
}

// Writes the new tokens into the place made for all of them; the whole, or what is filled after a
// prefill.
Tensor written(Tensor& whole, const Tensor& fresh, std::int64_t capacity, std::int64_t length) {
  if (!whole)
    whole = fresh.session().zeros({fresh.size(0), fresh.size(1), capacity, fresh.size(3)},
                                  fresh.dtype());
  copy_into(slice(whole, 2, length, length + fresh.size(2)), fresh);
  return fresh.size(2) > 1 ? slice(whole, 2, 0, length + fresh.size(2)) : whole;
}

}  // namespace

Tensor KeyValueCache::with_skipped(const Tensor& fresh, const Tensor& cached,
                                   std::int64_t window) const {
  std::int64_t missing = skipped_;
  if (window > 0 && cached)
    missing = std::clamp<std::int64_t>(window - 1 - cached.size(2), 0, missing);
  if (missing == 0) return fresh;
  Shape shape = fresh.shape();
  Shape strides = fresh.strides();
  shape[2] += missing;
  strides[2] = 0;
  return fresh.alias(shape, strides, fresh.impl()->offset);
}

void KeyValueCache::update(std::size_t index, Tensor& k, Tensor& v, std::int64_t window) {
  Layer& layer = layers_[index];
  const ComponentScope scope(k.session(), Component::kKvCache);
  if (kind_ == KvCache::kStatic) {
    const NoGrad no_grad(k.session());
    k = written(layer.keys, k, capacity_, length_);
    v = written(layer.values, v, capacity_, length_);
    return;
  }
  if (kind_ == KvCache::kTuple) {
    if (layer.keys) {
      before_.push_back(layer);
      if (skipped_ > 0) {
        k = with_skipped(k, layer.keys, window);
        v = with_skipped(v, layer.values, window);
      }
      k = grown(layer.keys, k, layer.keys.dtype());
      v = grown(layer.values, v, layer.values.dtype());
    } else {
      // The first tuple holds the tensors themselves.
      k.impl()->storage->set_component(Component::kKvCache);
      v.impl()->storage->set_component(Component::kKvCache);
    }
    layer = {k, v};
    return;
  }
  const DType dtype = k.dtype();
  if (skipped_ > 0) {
    k = with_skipped(k, layer.keys, window);
    v = with_skipped(v, layer.values, window);
  }
  layer.keys = grown(layer.keys, k, dtype);
  layer.values = grown(layer.values, v, dtype);
  k = layer.keys;
  v = layer.values;
  if (window == 0 || k.size(2) < window) return;
  // Views: what they leave out goes when the next token's are joined to them.
  layer.keys = slice(k, 2, k.size(2) - window + 1, k.size(2));
  layer.values = slice(v, 2, v.size(2) - window + 1, v.size(2));
}

void KeyValueCache::advance(std::int64_t new_tokens) {
  length_ += new_tokens;
  skipped_ = 0;
  before_.clear();
}

}  // namespace memfathom

// Attention rows: one query's output by online softmax, one query's gradient, one key's and value's
// gradient.
//
// There is no score matrix: scores are recomputed from q and k, and probabilities from the
// log-sum-exp. One thread gathers each result, without atomics.
#pragma once

#include "kernels/devices/element/math.h"
#include "kernels/devices/element/random.h"
#include "kernels/devices/element/strided_span.h"

namespace memfathom::element {

// A tensor [batch, heads, position, width] by strides; null data when absent.
struct AttentionTensor {
  void* data = nullptr;
  DType dtype = DType::kFp32;
  int64_t stride[4] = {0, 0, 0, 0};

  MEMFATHOM_HD explicit operator bool() const { return data != nullptr; }
  MEMFATHOM_HD int64_t offset(int64_t b, int64_t h, int64_t s) const {
    return b * stride[0] + h * stride[1] + s * stride[2];
  }
  template <typename T>
  MEMFATHOM_HD T get(int64_t row, int64_t i) const {
    return load<T>(data, dtype, row + i * stride[3]);
  }
  template <typename T>
  MEMFATHOM_HD void set(int64_t row, int64_t i, T value) const {
    store<T>(data, dtype, row + i * stride[3], value);
  }
};

struct AttentionView {
  AttentionTensor q, k, v, mask, out, logsumexp, dout, dq, dk,
      dv;  // mask [b, h, s, t]; logsumexp [b, h, s]
  int64_t batch = 0, heads = 0, kv_heads = 0, queries = 0, keys = 0, width = 0;
  bool causal = false;
  double scale = 1;
  double dropout = 0;
  uint64_t seed = 0, offset = 0;

  MEMFATHOM_HD int64_t kv_head(int64_t h) const { return h / (heads / kv_heads); }
  // With fewer queries than keys the first query still attends only to the first key, as in torch's
  // is_causal.
  MEMFATHOM_HD int64_t visible_keys(int64_t s) const {
    return causal && s + 1 < keys ? s + 1 : keys;
  }
  // The factor of a probability: 0 or 1 / (1 - p).
  MEMFATHOM_HD double kept(int64_t b, int64_t h, int64_t s, int64_t t) const {
    if (dropout == 0) return 1;
    const uint64_t position = uint64_t(((b * heads + h) * queries + s) * keys + t);
    return dropout_keeps(seed, offset, position, dropout) ? 1 / (1 - dropout) : 0;
  }
};

template <typename T>
MEMFATHOM_HD T dot(const AttentionTensor& a, int64_t row_a, const AttentionTensor& b, int64_t row_b,
                   int64_t n) {
  T sum = T(0);
  for (int64_t i = 0; i < n; ++i) sum += a.get<T>(row_a, i) * b.get<T>(row_b, i);
  return sum;
}

template <typename T>
MEMFATHOM_HD T score(const AttentionView& a, int64_t b, int64_t h, int64_t s, int64_t t) {
  T value =
      dot<T>(a.q, a.q.offset(b, h, s), a.k, a.k.offset(b, a.kv_head(h), t), a.width) * T(a.scale);
  if (a.mask) value += a.mask.get<T>(a.mask.offset(b, h, s), t);
  return value;
}

// A wider row takes several sweeps over the keys, so that its sums fit in a thread's registers or
// stack.
constexpr int kAttentionTile = 128;

// Writes out[b, h, s] and logsumexp[b, h, s]. A query whose keys are all masked gives zeros.
template <typename T>
MEMFATHOM_HD void attention_query(const AttentionView& a, int64_t b, int64_t h, int64_t s) {
  const int64_t keys = a.visible_keys(s), kv = a.kv_head(h);
  const int64_t row_out = a.out.offset(b, h, s);
  for (int64_t first = 0; first < a.width; first += kAttentionTile) {
    const int64_t count = a.width - first < kAttentionTile ? a.width - first : kAttentionTile;
    T sums[kAttentionTile];
    for (int64_t i = 0; i < count; ++i) sums[i] = T(0);
    T top = -T(INFINITY), total = T(0);
    for (int64_t t = 0; t < keys; ++t) {
      const T x = score<T>(a, b, h, s, t);
      if (x == -T(INFINITY)) continue;
      if (x > top) {  // a new maximum: rescales the previous sums
        const T shrink = math::exp(top - x);
        for (int64_t i = 0; i < count; ++i) sums[i] *= shrink;
        total *= shrink;
        top = x;
      }
      const T weight = math::exp(x - top);
      total += weight;
      const T kept = weight * T(a.kept(b, h, s, t));
      const int64_t row_v = a.v.offset(b, kv, t);
      for (int64_t i = 0; i < count; ++i) sums[i] += kept * a.v.get<T>(row_v, first + i);
    }
    for (int64_t i = 0; i < count; ++i) {
      a.out.set<T>(row_out, first + i, total > T(0) ? sums[i] / total : T(0));
    }
    if (first == 0 && a.logsumexp)
      a.logsumexp.set<T>(a.logsumexp.offset(b, h, s), 0, top + math::log(total));
  }
}

// The gradient of one (query, key) pair.
template <typename T>
struct PairGradient {
  T weight;  // the probability after dropout: the share of dout that reaches v
  T score;   // d loss / d (q.k), including the scale
};

// `delta` is sum(dout * out) of the query's row.
template <typename T>
MEMFATHOM_HD PairGradient<T> pair_gradient(const AttentionView& a, int64_t b, int64_t h, int64_t s,
                                           int64_t t, T logsumexp, T delta) {
  const T x = score<T>(a, b, h, s, t);
  if (x == -T(INFINITY)) return {T(0), T(0)};
  const T probability = math::exp(x - logsumexp);
  const T kept = T(a.kept(b, h, s, t));
  const T dp =
      dot<T>(a.dout, a.dout.offset(b, h, s), a.v, a.v.offset(b, a.kv_head(h), t), a.width) * kept;
  return {probability * kept, probability * (dp - delta) * T(a.scale)};
}

template <typename T>
MEMFATHOM_HD T attention_delta(const AttentionView& a, int64_t b, int64_t h, int64_t s) {
  return dot<T>(a.dout, a.dout.offset(b, h, s), a.out, a.out.offset(b, h, s), a.width);
}

// Writes dq[b, h, s].
template <typename T>
MEMFATHOM_HD void attention_query_backward(const AttentionView& a, int64_t b, int64_t h,
                                           int64_t s) {
  const int64_t keys = a.visible_keys(s), kv = a.kv_head(h);
  const T delta = attention_delta<T>(a, b, h, s);
  const T logsumexp = a.logsumexp.get<T>(a.logsumexp.offset(b, h, s), 0);
  const int64_t row_dq = a.dq.offset(b, h, s);
  for (int64_t first = 0; first < a.width; first += kAttentionTile) {
    const int64_t count = a.width - first < kAttentionTile ? a.width - first : kAttentionTile;
    T sums[kAttentionTile];
    for (int64_t i = 0; i < count; ++i) sums[i] = T(0);
    for (int64_t t = 0; t < keys; ++t) {
      const PairGradient<T> pair = pair_gradient<T>(a, b, h, s, t, logsumexp, delta);
      const int64_t row_k = a.k.offset(b, kv, t);
      for (int64_t i = 0; i < count; ++i) sums[i] += pair.score * a.k.get<T>(row_k, first + i);
    }
    for (int64_t i = 0; i < count; ++i) a.dq.set<T>(row_dq, first + i, sums[i]);
  }
}

// Writes dk[b, kv, t] and dv[b, kv, t]: the sum over the heads that share them and the queries that
// attend to them.
template <typename T>
MEMFATHOM_HD void attention_key_backward(const AttentionView& a, int64_t b, int64_t kv, int64_t t) {
  const int64_t shared = a.heads / a.kv_heads;
  for (int64_t first = 0; first < a.width; first += kAttentionTile) {
    const int64_t count = a.width - first < kAttentionTile ? a.width - first : kAttentionTile;
    T sums_k[kAttentionTile], sums_v[kAttentionTile];
    for (int64_t i = 0; i < count; ++i) sums_k[i] = sums_v[i] = T(0);
    for (int64_t h = kv * shared; h < (kv + 1) * shared; ++h) {
      for (int64_t s = a.causal ? t : 0; s < a.queries; ++s) {
        const T delta = attention_delta<T>(a, b, h, s);
        const T logsumexp = a.logsumexp.get<T>(a.logsumexp.offset(b, h, s), 0);
        const PairGradient<T> pair = pair_gradient<T>(a, b, h, s, t, logsumexp, delta);
        const int64_t row_q = a.q.offset(b, h, s), row_dout = a.dout.offset(b, h, s);
        for (int64_t i = 0; i < count; ++i) {
          sums_k[i] += pair.score * a.q.get<T>(row_q, first + i);
          sums_v[i] += pair.weight * a.dout.get<T>(row_dout, first + i);
        }
      }
    }
    for (int64_t i = 0; i < count; ++i) {
      a.dk.set<T>(a.dk.offset(b, kv, t), first + i, sums_k[i]);
      a.dv.set<T>(a.dv.offset(b, kv, t), first + i, sums_v[i]);
    }
  }
}

}  // namespace memfathom::element

// Attention work: one query's output, one query's gradient, one key's and value's gradient, each by
// one team.
//
// The members of a team hold a few of the row's features each in registers and sum dot products
// together; the backward pass recomputes scores. Local memory is not used, because it would enlarge
// the context of the process.
#pragma once

#include "kernels/devices/cuda/work/team.h"
#include "kernels/devices/element/attention.h"
#include "kernels/devices/element/geometry.h"
#include "kernels/framework/device/calls.h"

namespace memfathom::cuda {

constexpr int kMaxHeadSize = 256;

// The features of one row that a member holds: lane, lane + size, ...
template <typename T, typename Team>
struct Features {
  static constexpr int kCount = kMaxHeadSize / Team::kSize;
  T value[kCount];

  MEMFATHOM_HD void clear() {
    for (int k = 0; k < kCount; ++k) value[k] = T(0);
  }
  MEMFATHOM_HD void load(const Team& team, const element::AttentionTensor& tensor, int64_t row,
                         int64_t width) {
    for (int k = 0; k < kCount; ++k) {
      const int64_t i = team.lane() + int64_t(k) * Team::kSize;
      value[k] = i < width ? tensor.get<T>(row, i) : T(0);
    }
  }
  MEMFATHOM_HD void store(const Team& team, const element::AttentionTensor& tensor, int64_t row,
                          int64_t width, T factor) const {
    for (int k = 0; k < kCount; ++k) {
      const int64_t i = team.lane() + int64_t(k) * Team::kSize;
      if (i < width) tensor.set<T>(row, i, value[k] * factor);
    }
  }
  MEMFATHOM_HD T dot(const Team& team, const Features& other) const {
    T sum = T(0);
    for (int k = 0; k < kCount; ++k) sum += value[k] * other.value[k];
    return team.sum(sum);
  }
  MEMFATHOM_HD void add(T factor, const Features& other) {
    for (int k = 0; k < kCount; ++k) value[k] += factor * other.value[k];
  }
  MEMFATHOM_HD void scale(T factor) {
    for (int k = 0; k < kCount; ++k) value[k] *= factor;
  }
};

template <typename T>
struct AttentionWork {
  element::AttentionView a;

  template <typename Team>
  MEMFATHOM_HD void operator()(const Team& team, int64_t r) const {
    const int64_t s = r % a.queries, h = r / a.queries % a.heads, b = r / a.queries / a.heads;
    const int64_t kv = a.kv_head(h);
    Features<T, Team> q, k, sums;
    q.load(team, a.q, a.q.offset(b, h, s), a.width);
    sums.clear();
    T top = -T(INFINITY);
    T total = T(0);
    for (int64_t t = 0; t < a.visible_keys(s); ++t) {
      k.load(team, a.k, a.k.offset(b, kv, t), a.width);
      T x = q.dot(team, k) * T(a.scale);
      if (a.mask) x += a.mask.get<T>(a.mask.offset(b, h, s), t);
      if (x == -T(INFINITY)) continue;
      if (x > top) {  // a new maximum: rescales the previous sums
        const T shrink = element::math::exp(top - x);
        sums.scale(shrink);
        total *= shrink;
        top = x;
      }
      const T weight = element::math::exp(x - top);
      total += weight;
      k.load(team, a.v, a.v.offset(b, kv, t), a.width);
      sums.add(weight * T(a.kept(b, h, s, t)), k);
    }
    sums.store(team, a.out, a.out.offset(b, h, s), a.width, total > T(0) ? T(1) / total : T(0));
    if (team.lane() == 0 && a.logsumexp) {
      a.logsumexp.set<T>(a.logsumexp.offset(b, h, s), 0, top + element::math::log(total));
    }
  }
};

// The gradient of one (query, key) pair: into v by `weight`, into q and k by `score`.
template <typename T>
MEMFATHOM_HD element::PairGradient<T> pair_gradient(const element::AttentionView& a, int64_t b,
                                                    int64_t h, int64_t s, int64_t t, T score, T dp,
                                                    T delta) {
  T x = score * T(a.scale);
  if (a.mask) x += a.mask.get<T>(a.mask.offset(b, h, s), t);
  if (x == -T(INFINITY)) return {T(0), T(0)};
  const T probability = element::math::exp(x - a.logsumexp.get<T>(a.logsumexp.offset(b, h, s), 0));
  const T kept = T(a.kept(b, h, s, t));
  return {probability * kept, probability * (dp * kept - delta) * T(a.scale)};
}

template <typename T>
struct AttentionQueryBackwardWork {
  element::AttentionView a;

  template <typename Team>
  MEMFATHOM_HD void operator()(const Team& team, int64_t r) const {
    const int64_t s = r % a.queries, h = r / a.queries % a.heads, b = r / a.queries / a.heads;
    const int64_t kv = a.kv_head(h);
    Features<T, Team> q, k, v, dout, dq;
    q.load(team, a.q, a.q.offset(b, h, s), a.width);
    dout.load(team, a.dout, a.dout.offset(b, h, s), a.width);
    k.load(team, a.out, a.out.offset(b, h, s), a.width);
    const T delta = dout.dot(team, k);
    dq.clear();
    for (int64_t t = 0; t < a.visible_keys(s); ++t) {
      k.load(team, a.k, a.k.offset(b, kv, t), a.width);
      v.load(team, a.v, a.v.offset(b, kv, t), a.width);
      const T score = q.dot(team, k);
      const T dp = dout.dot(team, v);
      dq.add(pair_gradient(a, b, h, s, t, score, dp, delta).score, k);
    }
    dq.store(team, a.dq, a.dq.offset(b, h, s), a.width, T(1));
  }
};

template <typename T>
struct AttentionKeyBackwardWork {
  element::AttentionView a;

  template <typename Team>
  MEMFATHOM_HD void operator()(const Team& team, int64_t r) const {
    const int64_t t = r % a.keys, kv = r / a.keys % a.kv_heads, b = r / a.keys / a.kv_heads;
    const int64_t shared = a.heads / a.kv_heads;
    Features<T, Team> q, k, v, dout, dk, dv;
    k.load(team, a.k, a.k.offset(b, kv, t), a.width);
    v.load(team, a.v, a.v.offset(b, kv, t), a.width);
    dk.clear();
    dv.clear();
    for (int64_t h = kv * shared; h < (kv + 1) * shared; ++h) {
      for (int64_t s = a.causal ? t : 0; s < a.queries; ++s) {
        dout.load(team, a.dout, a.dout.offset(b, h, s), a.width);
        q.load(team, a.out, a.out.offset(b, h, s), a.width);  // registers are short
        const T delta = dout.dot(team, q);
        q.load(team, a.q, a.q.offset(b, h, s), a.width);
        const T score = q.dot(team, k);
        const T dp = dout.dot(team, v);
        const element::PairGradient<T> pair = pair_gradient(a, b, h, s, t, score, dp, delta);
        dk.add(pair.score, q);
        dv.add(pair.weight, dout);
      }
    }
    dk.store(team, a.dk, a.dk.offset(b, kv, t), a.width, T(1));
    dv.store(team, a.dv, a.dv.offset(b, kv, t), a.width, T(1));
  }
};

template <typename Executor>
void submit(Executor& executor, const AttentionCall& call) {
  const element::AttentionView view = element::view_of(call);
  const int64_t queries = view.batch * view.heads * view.queries;
  const auto run = [&]<typename T>(T) {
    if (!call.backward) return executor.narrow_rows(queries, AttentionWork<T>{view});
    if (call.dq) executor.narrow_rows(queries, AttentionQueryBackwardWork<T>{view});
    if (call.dk) {
      executor.narrow_rows(view.batch * view.kv_heads * view.keys,
                           AttentionKeyBackwardWork<T>{view});
    }
  };
  in_double(call.q.dtype) ? run(0.0) : run(0.0F);
}

}  // namespace memfathom::cuda

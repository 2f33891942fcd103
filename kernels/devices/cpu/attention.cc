#include "kernels/devices/cpu/attention.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "kernels/devices/cpu/gather.h"
#include "kernels/devices/cpu/gemm.h"
#include "kernels/devices/element/geometry.h"
#include "kernels/devices/reference/reference.h"

namespace memfathom::cpu {
namespace {

using element::AttentionTensor;
using element::AttentionView;
using element::StridedSpan;

// Queries per block: scores are [kBlock, keys].
constexpr std::int64_t kBlock = 64;

std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

// The rows [first, first + rows) of one head, [rows, width].
StridedSpan head_lane(const AttentionTensor& t, std::int64_t b, std::int64_t h, std::int64_t first,
                      std::int64_t rows, std::int64_t width) {
  char* data = static_cast<char*>(t.data) + t.offset(b, h, first) * element::element_bytes(t.dtype);
  return {data, t.dtype, 2, {rows, width}, {t.stride[2], t.stride[3]}};
}

std::vector<float> read_head(const AttentionTensor& t, std::int64_t b, std::int64_t h,
                             std::int64_t first, std::int64_t rows, std::int64_t width) {
  std::vector<float> values(at(rows * width));
  gather(head_lane(t, b, h, first, rows, width), 0, rows * width, values.data());
  return values;
}

// One block of queries of one head.
struct Block {
  const AttentionView& view;
  std::int64_t b, h, first, rows;

  Block(const AttentionView& v, std::int64_t batch, std::int64_t head, std::int64_t start)
      : view(v), b(batch), h(head), first(start), rows(std::min(kBlock, v.queries - start)) {}

  std::vector<float> read(const AttentionTensor& t) const {
    return read_head(t, b, h, first, rows, view.width);
  }
  void write(const AttentionTensor& t, const std::vector<float>& values) const {
    scatter(head_lane(t, b, h, first, rows, view.width), 0, rows * view.width, values.data());
  }

  // Scaled, masked scores [rows, keys].
  std::vector<float> scores(std::vector<float>& q, std::vector<float>& k) const {
    std::vector<float> result(at(rows * view.keys)), mask(at(view.mask ? view.keys : 0));
    sgemm(rows, view.keys, view.width, static_cast<float>(view.scale),
          {q.data(), view.width, false}, {k.data(), view.width, true}, 0, result.data(), view.keys);
    for (std::int64_t r = 0; r < rows; ++r) {
      float* row = result.data() + r * view.keys;
      if (view.mask) {
        char* data = static_cast<char*>(view.mask.data) +
                     view.mask.offset(b, h, first + r) * element::element_bytes(view.mask.dtype);
        gather(StridedSpan{data, view.mask.dtype, 1, {view.keys}, {view.mask.stride[3]}}, 0,
               view.keys, mask.data());
        for (std::int64_t t = 0; t < view.keys; ++t) row[t] += mask[at(t)];
      }
      std::fill(row + view.visible_keys(first + r), row + view.keys, -INFINITY);
    }
    return result;
  }

  float kept(std::int64_t r, std::int64_t t) const {
    return static_cast<float>(view.kept(b, h, first + r, t));
  }
  std::int64_t statistic(std::int64_t r) const { return view.logsumexp.offset(b, h, first + r); }
};

// Scores to probabilities (with dropout) in place; writes the log-sum-exp.
void softmax_rows(const Block& block, std::vector<float>& scores) {
  const AttentionView& view = block.view;
  for (std::int64_t r = 0; r < block.rows; ++r) {
    float* row = scores.data() + r * view.keys;
    const float top = *std::max_element(row, row + view.keys);
    float sum = 0;
    for (std::int64_t t = 0; t < view.keys; ++t) {
      row[t] = row[t] == -INFINITY ? 0.0f : std::exp(row[t] - top);
      sum += row[t];
    }
    const float factor = sum > 0 ? 1 / sum : 0;
    for (std::int64_t t = 0; t < view.keys; ++t) row[t] *= factor;
    if (view.logsumexp) view.logsumexp.set<float>(block.statistic(r), 0, top + std::log(sum));
    if (view.dropout == 0) continue;
    for (std::int64_t t = 0; t < view.keys; ++t) row[t] *= block.kept(r, t);
  }
}

void forward(const AttentionView& view) {
  for (std::int64_t b = 0; b < view.batch; ++b) {
    for (std::int64_t h = 0; h < view.heads; ++h) {
      std::vector<float> k = read_head(view.k, b, view.kv_head(h), 0, view.keys, view.width);
      std::vector<float> v = read_head(view.v, b, view.kv_head(h), 0, view.keys, view.width);
      for (std::int64_t first = 0; first < view.queries; first += kBlock) {
        const Block block(view, b, h, first);
        std::vector<float> q = block.read(view.q), out(q.size());
        std::vector<float> p = block.scores(q, k);
        softmax_rows(block, p);
        sgemm(block.rows, view.width, view.keys, 1, {p.data(), view.keys, false},
              {v.data(), view.width, false}, 0, out.data(), view.width);
        block.write(view.out, out);
      }
    }
  }
}

// From scores s and dp = dout.v^T: s becomes the probabilities after dropout, dp the gradient of
// the scaled scores.
void gradient_rows(const Block& block, const std::vector<float>& dout,
                   const std::vector<float>& out, std::vector<float>& s, std::vector<float>& dp) {
  const AttentionView& view = block.view;
  for (std::int64_t r = 0; r < block.rows; ++r) {
    float delta = 0;
    for (std::int64_t i = 0; i < view.width; ++i)
      delta += dout[at(r * view.width + i)] * out[at(r * view.width + i)];
    const float logsumexp = view.logsumexp.get<float>(block.statistic(r), 0);
    for (std::int64_t t = 0; t < view.keys; ++t) {
      float& score = s[at(r * view.keys + t)];
      float& gradient = dp[at(r * view.keys + t)];
      const float probability = score == -INFINITY ? 0.0f : std::exp(score - logsumexp);
      const float kept = block.kept(r, t);
      gradient = probability * (gradient * kept - delta) * static_cast<float>(view.scale);
      score = probability * kept;
    }
  }
}

void backward(const AttentionView& view) {
  const std::int64_t shared = view.heads / view.kv_heads, n = view.keys, d = view.width;
  for (std::int64_t b = 0; b < view.batch; ++b) {
    for (std::int64_t kv = 0; kv < view.kv_heads; ++kv) {
      std::vector<float> k = read_head(view.k, b, kv, 0, n, d),
                         v = read_head(view.v, b, kv, 0, n, d);
      std::vector<float> dk(k.size()), dv(v.size());
      for (std::int64_t h = kv * shared; h < (kv + 1) * shared; ++h) {
        for (std::int64_t first = 0; first < view.queries; first += kBlock) {
          const Block block(view, b, h, first);
          const std::int64_t m = block.rows;
          std::vector<float> q = block.read(view.q), dout = block.read(view.dout), dq(q.size());
          std::vector<float> p = block.scores(q, k), ds(p.size());
          sgemm(m, n, d, 1, {dout.data(), d, false}, {v.data(), d, true}, 0, ds.data(), n);
          gradient_rows(block, dout, block.read(view.out), p, ds);
          sgemm(n, d, m, 1, {p.data(), n, true}, {dout.data(), d, false}, 1, dv.data(), d);
          sgemm(n, d, m, 1, {ds.data(), n, true}, {q.data(), d, false}, 1, dk.data(), d);
          if (!view.dq) continue;
          sgemm(m, d, n, 1, {ds.data(), n, false}, {k.data(), d, false}, 0, dq.data(), d);
          block.write(view.dq, dq);
        }
      }
      if (view.dk) scatter(head_lane(view.dk, b, kv, 0, n, d), 0, n * d, dk.data());
      if (view.dv) scatter(head_lane(view.dv, b, kv, 0, n, d), 0, n * d, dv.data());
    }
  }
}

}  // namespace

void run_attention(const AttentionCall& call) {
  const AttentionView view = element::view_of(call);
  if (call.q.dtype == DType::kFp64 || view.width == 0 || view.keys == 0) return run_reference(call);
  call.backward ? backward(view) : forward(view);
}

}  // namespace memfathom::cpu

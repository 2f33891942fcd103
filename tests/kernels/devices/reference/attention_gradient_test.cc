// Attention: against a written-out softmax(q k^T) v, and its gradients against finite differences.
#include <gtest/gtest.h>

#include <limits>

#include "kernels/devices/reference/reference.h"
#include "tests/kernels/devices/reference/finite_differences.h"

namespace memfathom {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

using testing::distance;
using testing::HostTensor;
using testing::numerical_gradient;
using testing::weighted_sum;

struct AttentionCase {
  const char* name;
  std::int64_t heads, kv_heads, queries, keys, width;
  bool causal, masked;
  double dropout;
};

class AttentionTest : public ::testing::TestWithParam<AttentionCase> {
 protected:
  void SetUp() override {
    const AttentionCase& c = GetParam();
    const Shape query{2, c.heads, c.queries, c.width}, key{2, c.kv_heads, c.keys, c.width};
    q = HostTensor::random(query, 1);
    k = HostTensor::random(key, 2);
    v = HostTensor::random(key, 3);
    mask = HostTensor::random({2, 1, c.queries, c.keys}, 4);
    dout = HostTensor::random(query, 5);
    out = HostTensor(query);
    logsumexp = HostTensor({2, c.heads, c.queries});
    call.causal = c.causal;
    call.scale = 0.6;
    call.dropout = c.dropout;
    call.seed = 9;
    call.q = q;
    call.k = k;
    call.v = v;
    if (c.masked) call.mask = mask;
    call.out = out;
    call.logsumexp = logsumexp;
  }

  HostTensor q, k, v, mask, dout, out, logsumexp;
  AttentionCall call;
};

TEST_P(AttentionTest, GradientsAgreeWithFiniteDifferences) {
  const auto loss = [&] {
    run_reference(call);
    return weighted_sum(out, dout);
  };
  const HostTensor expected_q = numerical_gradient(q, loss),
                   expected_k = numerical_gradient(k, loss);
  const HostTensor expected_v = numerical_gradient(v, loss);
  loss();
  HostTensor dq(q.operand().shape), dk(k.operand().shape), dv(v.operand().shape);
  AttentionCall backward = call;
  backward.backward = true;
  backward.dout = dout;
  backward.dq = dq;
  backward.dk = dk;
  backward.dv = dv;
  run_reference(backward);
  EXPECT_LT(distance(dq, expected_q), 2e-8);
  EXPECT_LT(distance(dk, expected_k), 2e-8);
  EXPECT_LT(distance(dv, expected_v), 2e-8);
}

TEST_P(AttentionTest, OutputIsTheSoftmaxOfTheScoresTimesV) {
  const AttentionCase& c = GetParam();
  run_reference(call);
  for (std::int64_t row = 0; row < 2 * c.heads * c.queries; ++row) {
    const std::int64_t b = row / (c.heads * c.queries), h = row / c.queries % c.heads,
                       s = row % c.queries;
    const std::int64_t kv = (b * c.kv_heads + h / (c.heads / c.kv_heads)) * c.keys;
    std::vector<double> weights;
    double total = 0;
    for (std::int64_t t = 0; t < c.keys; ++t) {
      double score = 0;
      for (std::int64_t i = 0; i < c.width; ++i)
        score += 0.6 * q.get(row * c.width + i) * k.get((kv + t) * c.width + i);
      if (c.masked) score += mask.get((b * c.queries + s) * c.keys + t);
      weights.push_back(c.causal && t > s ? 0 : std::exp(score));
      total += weights.back();
      // Dropout comes after the softmax: a dropped weight still counts in the sum.
      const bool kept =
          element::dropout_keeps(9, 0, static_cast<std::uint64_t>(row * c.keys + t), c.dropout);
      weights.back() *= kept ? 1 / (1 - c.dropout) : 0;
    }
    EXPECT_NEAR(logsumexp.get(row), std::log(total), 1e-12);
    for (std::int64_t i = 0; i < c.width; ++i) {
      double sum = 0;
      for (std::int64_t t = 0; t < c.keys; ++t)
        sum += weights[static_cast<std::size_t>(t)] / total * v.get((kv + t) * c.width + i);
      EXPECT_NEAR(out.get(row * c.width + i), sum, 1e-12);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, AttentionTest,
    ::testing::Values(AttentionCase{"Plain", 2, 2, 3, 4, 5, false, false, 0},
                      AttentionCase{"Causal", 2, 2, 5, 5, 3, true, false, 0},
                      AttentionCase{"CausalWithFewerQueries", 1, 1, 2, 4, 3, true, false, 0},
                      AttentionCase{"Grouped", 4, 2, 3, 3, 4, true, false, 0},
                      AttentionCase{"Masked", 2, 1, 3, 4, 4, false, true, 0},
                      AttentionCase{"Dropout", 2, 2, 3, 4, 4, false, false, 0.4},
                      AttentionCase{"WiderThanATile", 1, 1, 2, 3, 130, false, false, 0}),
    [](const auto& test) { return test.param.name; });

TEST(MaskedAttentionTest, FullyMaskedQueryHasZeroOutputAndZeroGradient) {
  const HostTensor q = HostTensor::random({1, 1, 1, 2}, 1), k = HostTensor::random({1, 1, 2, 2}, 2);
  const HostTensor mask = HostTensor::of({1, 2}, {-kInfinity, -kInfinity});
  HostTensor out = HostTensor::random({1, 1, 1, 2}, 3), logsumexp({1, 1, 1}),
             dq = HostTensor::random({1, 1, 1, 2}, 4);
  AttentionCall call;
  call.q = q;
  call.k = k;
  call.v = k;
  call.mask = mask;
  call.out = out;
  call.logsumexp = logsumexp;
  run_reference(call);
  EXPECT_EQ(out.values(), (std::vector<double>{0, 0}));
  call.backward = true;
  call.dout = q;
  call.dq = dq;
  run_reference(call);
  EXPECT_EQ(dq.values(), (std::vector<double>{0, 0}));
}

}  // namespace
}  // namespace memfathom

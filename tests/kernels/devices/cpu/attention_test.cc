// Attention of the cpu device, by blocks of matrix products, against the reference's rows.
#include <gtest/gtest.h>

#include "kernels/devices/cpu/cpu_device.h"
#include "kernels/devices/reference/reference.h"
#include "tests/kernels/devices/reference/host_tensor.h"

namespace memfathom {
namespace {

using testing::distance;
using testing::HostTensor;
using testing::Layout;

struct Case {
  const char* name;
  std::int64_t heads, kv_heads, queries, keys, width;
  bool causal, masked;
  double dropout;
  DType dtype;
  Layout layout;
};

class CpuAttentionTest : public ::testing::TestWithParam<Case> {};

TEST_P(CpuAttentionTest, ForwardAndBackwardAgreeWithTheReference) {
  const Case& c = GetParam();
  const Shape query{2, c.heads, c.queries, c.width}, key{2, c.kv_heads, c.keys, c.width};
  const auto random = [&](const Shape& shape, std::uint64_t seed) {
    return HostTensor::random(shape, seed, c.dtype, c.layout);
  };
  const HostTensor q = random(query, 1), k = random(key, 2), v = random(key, 3),
                   dout = random(query, 4);
  const HostTensor mask = HostTensor::random({2, 1, 1, c.keys}, 5, c.dtype);
  CpuDevice device{Bytes{1 << 20}};
  HostTensor results[2][5];
  for (const bool by_device : {false, true}) {
    HostTensor* r = results[by_device ? 1 : 0];
    r[0] = HostTensor(query, c.dtype, c.layout);
    r[1] = HostTensor({2, c.heads, c.queries}, DType::kFp32);
    r[2] = HostTensor(query, c.dtype, c.layout);
    r[3] = HostTensor(key, c.dtype, c.layout);
    r[4] = HostTensor(key, c.dtype, c.layout);
    AttentionCall call;
    call.causal = c.causal;
    call.scale = 0.4;
    call.dropout = c.dropout;
    call.seed = 5;
    call.q = q;
    call.k = k;
    call.v = v;
    if (c.masked) call.mask = mask;
    call.out = r[0];
    call.logsumexp = r[1];
    by_device ? device.run(call) : run_reference(call);
    call.backward = true;
    call.dout = dout;
    call.dq = r[2];
    call.dk = r[3];
    call.dv = r[4];
    by_device ? device.run(call) : run_reference(call);
  }
  const double near = c.dtype == DType::kFp32 ? 1e-5 : c.dtype == DType::kFp16 ? 4e-3 : 3e-2;
  for (int i = 0; i < 5; ++i)
    EXPECT_LE(distance(results[1][i], results[0][i]), near) << "result " << i;
}

INSTANTIATE_TEST_SUITE_P(
    All, CpuAttentionTest,
    ::testing::Values(
        Case{"Plain", 2, 2, 9, 7, 8, false, false, 0, DType::kFp32, Layout::kContiguous},
        Case{"SeveralBlocks", 1, 1, 150, 130, 4, false, false, 0, DType::kFp32,
             Layout::kContiguous},
        Case{"CausalBlocks", 2, 1, 130, 130, 4, true, false, 0, DType::kFp32, Layout::kContiguous},
        Case{"Grouped", 6, 2, 11, 11, 8, true, false, 0, DType::kFp32, Layout::kContiguous},
        Case{"Masked", 2, 2, 5, 8, 8, false, true, 0, DType::kFp32, Layout::kContiguous},
        Case{"Dropout", 2, 2, 9, 9, 8, true, false, 0.3, DType::kFp32, Layout::kContiguous},
        Case{"Strided", 2, 2, 9, 7, 8, false, false, 0, DType::kFp32, Layout::kReversed},
        Case{"Fp16", 2, 2, 9, 7, 8, true, true, 0, DType::kFp16, Layout::kContiguous},
        Case{"Bf16", 4, 2, 9, 9, 8, true, false, 0.1, DType::kBf16, Layout::kContiguous}),
    [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace memfathom

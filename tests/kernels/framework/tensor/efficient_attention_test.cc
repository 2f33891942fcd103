// What PyTorch's memory-efficient attention allocates in its backward pass, by
// mem_eff_attention/kernel_backward.h and attention_backward.cu.
#include "kernels/framework/ops/efficient_attention.h"

#include <gtest/gtest.h>

#include "kernels/devices/dry/dry_device.h"
#include "kernels/framework/ops/arithmetic.h"
#include "kernels/framework/ops/attention.h"
#include "kernels/framework/tensor/engine.h"
#include "kernels/framework/tensor/session.h"
#include "kernels/memory/allocator/bare_allocator.h"

namespace memfathom {
namespace {

FrameworkPolicy on(int capability, const char* torch = "2.15.0") {
  return FrameworkPolicy::for_stack(torch, capability);
}

constexpr std::int64_t kTile = 64 * 64 + 4;  // numbers, and the lock of a tile

TEST(EfficientAttentionTest, AddsTheQueryGradientUpInTilesOfFp32) {
  const EfficientAttentionBackward sizes =
      efficient_attention_backward(on(80), DType::kBf16, {2, 4, 128, 64}, {2, 4, 128, 64});
  EXPECT_EQ(sizes.row_sums, Bytes{2} * 4 * 128 * 4);
  EXPECT_EQ(sizes.products, Bytes{}) << "the kernel computes them";
  EXPECT_EQ(sizes.workspace, Bytes{2} * 4 * 2 * kTile * 4);
}

TEST(EfficientAttentionTest, TilesArePadded) {
  const EfficientAttentionBackward sizes =
      efficient_attention_backward(on(80), DType::kBf16, {1, 1, 65, 40}, {1, 1, 7, 40});
  EXPECT_EQ(sizes.workspace, Bytes{2} * kTile * 4);
}

TEST(EfficientAttentionTest, Fp32HasProductsOfGradientAndOutput) {
  const EfficientAttentionBackward sizes =
      efficient_attention_backward(on(80), DType::kFp32, {1, 2, 128, 64}, {1, 2, 128, 64});
  EXPECT_EQ(sizes.products, Bytes{2} * 128 * 64 * 4);
  EXPECT_EQ(sizes.workspace, Bytes{2} * 2 * kTile * 4);
}

TEST(EfficientAttentionTest, BeforeTorch21OnlySixteenBitTypesHadAWorkspace) {
  const Shape q{1, 2, 128, 64};
  EXPECT_EQ(efficient_attention_backward(on(80, "2.0.1"), DType::kFp32, q, q).workspace, Bytes{});
  EXPECT_GT(efficient_attention_backward(on(80, "2.0.1"), DType::kFp16, q, q).workspace, Bytes{});
}

// Their tiles of keys do not fit into registers.
TEST(EfficientAttentionTest, WideHeadsStageTheGradientsOfKeysAndValues) {
  const Shape q{1, 50, 128, 128};
  const Bytes query_gradient = Bytes{50} * 4 * (128 * 128 + 4);
  EXPECT_EQ(efficient_attention_backward(on(80), DType::kBf16, q, q).workspace, query_gradient);
  const Bytes in_small_tiles = Bytes{50} * 4 * 4 * kTile;
  const Bytes of_keys = Bytes{50} * 4 * 2 * 64 * 128;
  // 200 blocks in all, at most one for each tile of keys.
  EXPECT_EQ(efficient_attention_backward(on(86), DType::kBf16, q, q).workspace,
            in_small_tiles + 2 * of_keys);
  const Shape many{1, 400, 128, 128};
  EXPECT_EQ(efficient_attention_backward(on(86), DType::kBf16, many, many).workspace,
            8 * (in_small_tiles + of_keys));
}

TEST(EfficientAttentionTest, HasBf16FromAmpereOn) {
  const auto chosen = [](int capability, DType type) {
    return choose_attention(on(capability), {}, type, 64, false);
  };
  EXPECT_EQ(chosen(75, DType::kFp16), AttentionImplementation::kEfficient);
  EXPECT_EQ(chosen(75, DType::kBf16), AttentionImplementation::kMath);
  EXPECT_EQ(chosen(70, DType::kFp32), AttentionImplementation::kEfficient);
}

TEST(EfficientAttentionTest, TheBackwardPassHoldsItsWorkspace) {
  DryDevice device;
  const auto peak_of = [&](bool counts) {
    BareAllocator allocator;
    FrameworkPolicy policy = on(80);
    policy.count_workspaces = counts;
    Session session(device, allocator, device.workspaces(), policy);
    Tensor q = session.zeros({2, 8, 512, 64}, DType::kFp32);
    q.set_requires_grad(true);
    const Tensor out = scaled_dot_product_attention(q, q, q, {.causal = false});
    run_backward(sum_all(out));
    return Bytes{allocator.statistics().allocated_bytes.all.peak};
  };
  const Bytes workspace = Bytes{2} * 8 * 8 * kTile * 4;
  EXPECT_GE(peak_of(true) - peak_of(false), workspace);
}

// pytorch#196678: with a mask, too, it is the default from 2.11 on.
TEST(CudnnAttentionTest, TakesMasksAndDropoutInSixteenthsWherePyTorchPrefersIt) {
  struct Case {
    const char* name;
    FrameworkPolicy policy;
    bool expected;
    bool masked = false;
    double dropout = 0;
    AttentionImplementation implementation = AttentionImplementation::kAuto;
    DType type = DType::kBf16;
  };
  for (const Case& c : {
           Case{"plain", on(90), true},
           Case{"masked", on(90), true, true},
           Case{"dropout of a sixteenth", on(90), true, false, 0.0625},
           Case{"dropout of a tenth", on(90), false, false, 0.1},
           Case{"another kernel named", on(90), false, true, 0,
                AttentionImplementation::kEfficient},
           Case{"fp32", on(90), false, true, 0, AttentionImplementation::kAuto, DType::kFp32},
           Case{"Ampere", on(80), false, true},
       }) {
    DryDevice device;
    BareAllocator allocator;
    Session session(device, allocator, device.workspaces(), c.policy);
    const Tensor q = session.empty({2, 4, 128, 64}, c.type);
    AttentionOptions options{
        .implementation = c.implementation, .causal = false, .dropout = c.dropout};
    if (c.masked) options.mask = session.empty({2, 1, 128, 128}, DType::kBool);
    scaled_dot_product_attention(q, q, q, options);
    EXPECT_EQ(session.used_cudnn(), c.expected) << c.name;
  }
}

}  // namespace
}  // namespace memfathom

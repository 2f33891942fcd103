// PyTorch's gemm workspaces by release and compute capability, as read from
// aten/src/ATen/cuda/CublasHandlePool.cpp and from libtorch_cuda.so of the releases' wheels.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "kernels/devices/dry/dry_device.h"
#include "kernels/framework/ops/matmul.h"
#include "kernels/framework/tensor/framework_policy.h"
#include "kernels/framework/tensor/session.h"
#include "kernels/memory/allocator/bare_allocator.h"

namespace memfathom {
namespace {

using namespace literals;

TEST(GemmWorkspaceTest, ItsSizeFollowsFromReleaseAndComputeCapability) {
  constexpr std::int64_t kSmall = 8519680;
  constexpr std::int64_t kLarge = 32 << 20;
  struct Case {
    const char* torch;
    int capability;
    std::int64_t bytes;
  };
  for (const Case& c : {
           Case{"2.0.1", 80, kSmall},
           Case{"2.0.1", 90, kLarge},
           Case{"2.8.0", 100, kSmall},
           Case{"2.11.0", 90, kLarge},
           Case{"2.11.0", 100, kSmall},
           Case{"2.11.0", 103, kSmall},
           Case{"2.11.0", 110, kSmall},
           Case{"2.11.0", 120, kSmall},
           Case{"2.12.0", 100, kLarge},
           Case{"2.12.0", 103, kLarge},
           Case{"2.12.0", 120, kLarge},
           Case{"2.12.0", 121, kLarge},
           Case{"2.13.0", 110, kSmall},
           Case{"2.14.0", 110, kLarge},
           Case{"2.15.0", 120, kLarge},
           Case{"2.15.0", 89, kSmall},
           Case{"2.15.0", 86, kSmall},
           Case{"", 90, kLarge},
       }) {
    EXPECT_EQ(FrameworkPolicy::for_stack(c.torch, c.capability).cublas_workspace, Bytes{c.bytes})
        << c.torch << " sm_" << c.capability;
  }
}

TEST(GemmWorkspaceTest, AnUnspecifiedReleaseKeepsItsWorkspaceLikeThoseBefore215) {
  EXPECT_TRUE(FrameworkPolicy::for_stack("", 80).keeps_cublas_workspace);
  EXPECT_EQ(FrameworkPolicy::for_stack("", 80).cublaslt_workspace, Bytes{});
  const FrameworkPolicy made;
  const FrameworkPolicy found = FrameworkPolicy::for_stack("", made.compute_capability);
  EXPECT_EQ(made.cublas_workspace, found.cublas_workspace);
  EXPECT_EQ(made.cublaslt_workspace, found.cublaslt_workspace);
  EXPECT_EQ(made.keeps_cublas_workspace, found.keeps_cublas_workspace);
  EXPECT_EQ(made.keeps_cublaslt_workspace, found.keeps_cublaslt_workspace);
}

struct Held {
  std::int64_t kept;  // after the products
  std::int64_t peak;  // during them, in addition to the tensors
};

// What workspaces hold after, and at the peak of, a product with a bias and one without.
Held held_by(const char* torch, bool with_bias) {
  DryDevice device;
  BareAllocator allocator;
  Session session(device, allocator, device.workspaces(), FrameworkPolicy::for_stack(torch, 80));
  const Tensor x = session.empty({8, 64}, DType::kFp32);
  const Tensor weight = session.empty({64, 64}, DType::kFp32);
  const Tensor bias = with_bias ? session.empty({64}, DType::kFp32) : Tensor();
  const auto live = [&] { return allocator.statistics().allocated_bytes.all.current; };
  const std::int64_t before = live();
  const Tensor first = linear(x, weight, bias);
  const Tensor second = linear(x, weight, bias);
  const std::int64_t tensors = 2 * 8 * 64 * 4;
  return {live() - before - tensors,
          allocator.statistics().allocated_bytes.all.peak - before - tensors};
}

TEST(GemmWorkspaceTest, EachReleaseKeepsOrFreesItsWorkspaces) {
  constexpr std::int64_t kCublas = 8519680;
  constexpr std::int64_t kLt = 1 << 20;
  struct Case {
    const char* torch;
    bool with_bias;
    Held held;
  };
  for (const Case& c : {
           Case{"2.8.0", false, {kCublas, kCublas}},
           Case{"2.8.0", true, {kCublas, kCublas + kLt}},         // cuBLASLt's for each call
           Case{"2.9.0", true, {kCublas + kLt, kCublas + kLt}},   // #156495
           Case{"2.11.0", true, {kCublas + kLt, kCublas + kLt}},  // #168175 alone
           Case{"2.12.0", true, {kCublas, kCublas}},              // #175879: shared
           Case{"2.14.1", true, {kCublas, kCublas}},
           Case{"2.15.0", true, {0, kLt}},  // #194311: for each call
           Case{"2.15.0", false, {0, kCublas}},
       }) {
    const Held found = held_by(c.torch, c.with_bias);
    EXPECT_EQ(found.kept, c.held.kept) << c.torch << " bias " << c.with_bias;
    EXPECT_EQ(found.peak, c.held.peak) << c.torch << " bias " << c.with_bias;
  }
}

}  // namespace
}  // namespace memfathom

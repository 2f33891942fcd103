// Attention: scaled_dot_product_attention and its kernels, and rotary embedding.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "core/enum_names.h"
#include "kernels/framework/tensor/framework_policy.h"
#include "kernels/framework/tensor/tensor.h"

namespace memfathom {

// kEager is matmul, softmax, matmul in the model's own code. kAuto leaves the choice to the
// framework.
enum class AttentionImplementation : std::uint8_t { kAuto, kEager, kEfficient, kFlash, kMath };

template <>
inline constexpr auto kEnumNames<AttentionImplementation> =
    std::to_array<EnumName<AttentionImplementation>>({{AttentionImplementation::kEager, "eager"},
                                                      {AttentionImplementation::kEfficient,
                                                       "efficient"},
                                                      {AttentionImplementation::kFlash, "flash"},
                                                      {AttentionImplementation::kMath, "math"},
                                                      {AttentionImplementation::kAuto, "sdpa"}});

// eager, efficient, flash, math, sdpa, and the frameworks' names (flash_attention_2, mem_efficient,
// ...).
std::optional<AttentionImplementation> parse_attention(std::string_view name);

struct AttentionOptions {
  AttentionImplementation implementation = AttentionImplementation::kAuto;
  bool causal = true;
  bool enable_gqa = true;  // otherwise fewer heads of k and v are broadcast, which no kernel does
  double dropout = 0;
  std::optional<double> scale;  // 1 / sqrt(head size) if absent
  Tensor mask;                  // bool or floating, broadcast to [b, heads, s, t]; undefined: none
};

// The kernel that scaled_dot_product_attention selects for these inputs under a policy.
AttentionImplementation choose_attention(const FrameworkPolicy& policy,
                                         const AttentionOptions& options, DType dtype,
                                         std::int64_t head_size, bool grouped);

// q [b, heads, s, d], k and v [b, kv_heads, t, d] -> [b, heads, s, d] (laid out as [b, s, heads,
// d]).
Tensor scaled_dot_product_attention(const Tensor& q, const Tensor& k, const Tensor& v,
                                    const AttentionOptions& options);

// The rotate-half form: x * cos + rotated(x) * sin.
Tensor apply_rotary(const Tensor& x, const Tensor& cos, const Tensor& sin);

}  // namespace memfathom

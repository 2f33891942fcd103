#include "kernels/framework/ops/efficient_attention.h"

#include <algorithm>

namespace memfathom {
namespace {

std::int64_t tiles_of(std::int64_t n, std::int64_t tile) { return (n + tile - 1) / tile; }

// A block's tile of queries and keys.
struct Tile {
  std::int64_t queries = 64, keys = 64;
  bool keeps_gradients = true;  // of keys and values in registers
};

// GPUs whose blocks may have more than 99 KiB of shared memory.
bool has_much_shared_memory(int capability) {
  return capability == 80 || capability == 87 || (capability >= 90 && capability < 120);
}

// The first kernel of PyTorch's list (mem_eff_attention/kernels/cutlassB.h) that takes the head and
// fits in shared memory. fp32 gradients are added up in the result itself.
Tile tile_of(int capability, DType dtype, std::int64_t head_size, double dropout) {
  const bool is_narrow = head_size <= 64;
  const bool is_large = has_much_shared_memory(capability);
  if (is_narrow) return {};
  if (!is_16bit_float(dtype)) return {is_large ? 128 : 64, 64, true};
  if ((capability == 86 || capability == 89) && head_size <= 96 && dropout == 0)
    return {128, 64, true};
  if (head_size <= 128) return is_large ? Tile{128, 128, true} : Tile{64, 64, false};
  return {is_large ? 128 : 64, 64, false};
}

// #101847: keys are split among blocks, which add the query gradient up in a workspace, also in
// fp32.
bool splits_keys(const FrameworkPolicy& policy) { return policy.torch_version >= Version{2, 1}; }

}  // namespace

// attention_backward.cu and the workspace_ functions of kernel_backward.h, in torch 2.15 as in 2.8.
// Before #127090 (2024) wide heads had a larger workspace, which is not counted.
EfficientAttentionBackward efficient_attention_backward(const FrameworkPolicy& policy, DType dtype,
                                                        const Shape& q, const Shape& k,
                                                        double dropout) {
  const std::int64_t head_size = std::max(q[3], k[3]);
  const Tile tile = tile_of(policy.compute_capability, dtype, head_size, dropout);
  const Bytes per_head = Bytes{4} * q[0] * q[1];
  EfficientAttentionBackward sizes;
  sizes.row_sums = per_head * q[2];
  const bool is_16bit = is_16bit_float(dtype);
  if (!is_16bit) sizes.products = sizes.row_sums * q[3];
  if (!is_16bit && !splits_keys(policy)) return sizes;
  constexpr std::int64_t kLocks = 4;  // before each tile
  // Bytes multiply with a check for overflow: a recording's extents come from a file.
  sizes.workspace = per_head * tiles_of(q[2], tile.queries) * tiles_of(q[3], tile.keys) *
                    (tile.queries * tile.keys + kLocks);
  if (!tile.keeps_gradients) {
    const std::int64_t heads = std::max<std::int64_t>(q[0] * q[1], 1);
    const std::int64_t splits = std::clamp<std::int64_t>(tiles_of(k[2], tile.keys), 1,
                                                         std::max<std::int64_t>(200 / heads, 1));
    sizes.workspace +=
        per_head * (2 * splits * tile.keys * tile.queries) * tiles_of(head_size, tile.queries);
  }
  return sizes;
}

}  // namespace memfathom

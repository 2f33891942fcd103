#include "kernels/framework/tensor/framework_policy.h"

namespace memfathom {

using namespace literals;

FrameworkPolicy FrameworkPolicy::for_stack(std::string_view torch_version, int compute_capability) {
  FrameworkPolicy policy;
  policy.torch_version = Version::parse(torch_version).value_or(policy.torch_version);
  const Version torch = policy.torch_version;
  policy.compute_capability = compute_capability;
  // CublasHandlePool.cpp: 32 MiB on Hopper, on Blackwell too in later versions; 8.125 MiB
  // elsewhere.
  if (compute_capability >= 90 && compute_capability < 120) policy.cublas_workspace = 32_MiB;
  policy.softmax_keeps_input = torch < Version{1, 11};
  policy.has_fused_attention = torch >= Version{2, 0};
  policy.attention_has_gqa = torch >= Version{2, 5};
  policy.rms_norm_is_fused = torch >= Version{2, 9};
  policy.efficient_attention_has_gqa = torch >= Version{2, 14};
  policy.group_norm_keeps_layout = torch >= Version{2, 15};
  return policy;
}

void FrameworkPolicy::set_bitsandbytes(Version version) {
  bitsandbytes_quantizes_from_fp16 = version < Version{0, 43, 0};
  bitsandbytes_keeps_input = version < Version{0, 43, 2};
  bitsandbytes_tiles_int8 = version < Version{0, 45, 0};
}

}  // namespace memfathom

#include "kernels/framework/tensor/framework_policy.h"

#include "core/version_number.h"

namespace memfathom {

using namespace literals;

FrameworkPolicy FrameworkPolicy::for_stack(std::string_view torch_version, int compute_capability) {
  FrameworkPolicy policy;
  const int version = version_number(torch_version);
  if (version > 0) policy.torch_version = version;
  policy.compute_capability = compute_capability;
  // CublasHandlePool.cpp: 32 MiB on Hopper, on Blackwell too in later versions; 8.125 MiB
  // elsewhere.
  if (compute_capability >= 90 && compute_capability < 120) policy.cublas_workspace = 32_MiB;
  policy.attention_has_gqa = policy.torch_version >= 205;
  policy.rms_norm_is_fused = policy.torch_version >= 209;
  policy.group_norm_keeps_layout = policy.torch_version >= 215;
  policy.softmax_keeps_input = policy.torch_version < 111;
  return policy;
}

}  // namespace memfathom

#include "kernels/framework/tensor/framework_policy.h"

#include <optional>

namespace memfathom {

using namespace literals;

namespace {

// PyTorch's parseChosenWorkspaceSize() (aten/src/ATen/cuda/CublasHandlePool.cpp): 32 MiB for
// compute capability 9.0, 8.125 MiB otherwise; with pytorch#175344, first in 2.12, 32 MiB for
// majors 9, 10 and 12; with #189312, first in 2.14, also for major 11. The releases are those whose
// libtorch_cuda.so has the comparison (wheels 2.0.1, 2.8 to 2.15.0 of PyPI, disassembled).
Bytes cublas_workspace_of(Version torch, int compute_capability) {
  const int major = compute_capability / 10;
  bool is_large = compute_capability == 90;
  if (torch >= Version{2, 12}) is_large = major == 9 || major == 10 || major == 12;
  if (torch >= Version{2, 14}) is_large = major >= 9 && major <= 12;
  return is_large ? 32_MiB : Bytes{8519680};
}

// cuBLASLt's workspace is 1 MiB (#73439, 1.12). It is allocated for each call until 2.8, kept for
// each handle and stream with #156495 (2.9), and shared with cuBLAS by default with #168175 and
// #175879: 2.11 has only the first, which computes the shared size but still allocates its own;
// 2.12 shares. 2.15 (#194311) allocates both for each call and does not share
// (TORCH_CUBLAS_WORKSPACE_CACHE is off by default).
void set_gemm_workspaces(FrameworkPolicy& policy, Version torch) {
  policy.cublas_workspace = cublas_workspace_of(torch, policy.compute_capability);
  policy.keeps_cublas_workspace = torch < Version{2, 15};
  const bool is_shared = torch >= Version{2, 12} && torch < Version{2, 15};
  policy.cublaslt_workspace = torch < Version{1, 12} || is_shared ? Bytes{} : 1_MiB;
  policy.keeps_cublaslt_workspace = torch >= Version{2, 9} && torch < Version{2, 12};
}

}  // namespace

FrameworkPolicy FrameworkPolicy::for_stack(std::string_view torch_version, int compute_capability) {
  FrameworkPolicy policy;
  const std::optional<Version> named = Version::parse(torch_version);
  policy.torch_version = named.value_or(policy.torch_version);
  const Version torch = policy.torch_version;
  policy.compute_capability = compute_capability;
  set_gemm_workspaces(policy, named.value_or(Version{2, 14}));
  policy.softmax_keeps_input = torch < Version{1, 11};
  policy.has_fused_attention = torch >= Version{2, 0};
  policy.attention_has_gqa = torch >= Version{2, 5};
  // check_prefer_cudnn_attention() (sdp_utils.cpp): cuDNN above 9.15 on 9.0 and 10.0, on 10.3 with
  // pytorch#170800. 2.11 is the first release that brings such a cuDNN; 2.10 has the check and
  // cuDNN 9.10. An unspecified release is not asked: its constants come from releases before that.
  policy.prefers_cudnn_attention =
      named && torch >= Version{2, 11} &&
      (compute_capability == 90 || compute_capability == 100 || compute_capability == 103);
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

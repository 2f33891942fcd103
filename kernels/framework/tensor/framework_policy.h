// FrameworkPolicy: the PyTorch version and GPU generation that a run imitates. All
// version-dependent constants are here.
#pragma once

#include <string_view>

#include "core/bytes.h"
#include "core/version.h"

namespace memfathom {

struct FrameworkPolicy {
  Version torch_version{2, 15};
  // Compute capability as major * 10 + minor: 8.0 is 80.
  int compute_capability = 80;

  // cuBLAS workspace of a gemm, from the caching allocator. torch < 2.15 keeps one for each
  // (thread, stream) that runs a gemm and never frees it; 2.15 allocates one for each call.
  Bytes cublas_workspace{8519680};
  bool keeps_cublas_workspace = true;
  // cuBLASLt (addmm with a bias epilogue): its own workspace; zero if it shares cuBLAS's. torch 2.9
  // to 2.11 keep it in addition to cuBLAS's; other versions that have one allocate it for each
  // call.
  Bytes cublaslt_workspace{0};
  bool keeps_cublaslt_workspace = false;

  // Whether library workspaces and temporaries of kernels' host code are allocated.
  // `allocator.backend: none` leaves them out, like other tools that only count tensors.
  bool count_workspaces = true;

  // Whether the framework works in place if a buffer has no other owner: autograd accumulates into
  // the first gradient, the attention fallback adds its mask in place. Fake tensors, and so
  // tensor-level accounting, never do.
  bool in_place_shortcuts = true;

  // torch >= 2.0: scaled_dot_product_attention has fused kernels.
  bool has_fused_attention = true;

  // 16-bit attention, masked or not, runs on cuDNN instead. Its tensors are counted as the other
  // kernels'; the process also loads cuDNN.
  bool prefers_cudnn_attention = false;

  // torch >= 2.14: the memory-efficient kernel accepts fewer key heads than query heads; 2.13 does
  // not.
  bool efficient_attention_has_gqa = true;

  // torch >= 2.5: scaled_dot_product_attention does not expand grouped k/v with enable_gqa.
  bool attention_has_gqa = true;

  // torch >= 2.9: RMSNorm is one kernel. Earlier versions use elementary operations, in C++ or in
  // scripts.
  bool rms_norm_is_fused = true;

  // torch >= 2.15: group norm computes in channels-last order; earlier kernels make contiguous
  // copies and a contiguous result.
  bool group_norm_keeps_layout = true;

  // torch < 1.11: softmax and log_softmax save their input in addition to their output.
  bool softmax_keeps_input = false;

  // bitsandbytes < 0.43.2: every 4-bit product saves its input for backward although it is not
  // needed (its #1270).
  bool bitsandbytes_keeps_input = false;

  // bitsandbytes < 0.43: 4-bit weights are quantized from fp16 and dequantized to fp16 before the
  // cast to the product's type (its #970).
  bool bitsandbytes_quantizes_from_fp16 = false;

  // bitsandbytes < 0.45: int8 products use tiles and also quantize their input by column.
  bool bitsandbytes_tiles_int8 = false;

  // Sets the three above.
  void set_bitsandbytes(Version version);

  // The policy for a PyTorch version ("2.6", "2.1.1") on a compute capability. Empty version: the
  // default's, but for gemm workspaces, which are kept as in every release from 2.0 to 2.14: the
  // published measurements without a version come from those.
  static FrameworkPolicy for_stack(std::string_view torch_version, int compute_capability);
};

}  // namespace memfathom

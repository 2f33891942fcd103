// FrameworkPolicy: what the run imitates: which PyTorch, on which kind of GPU. No version constants
// stand elsewhere.
#pragma once

#include <string_view>

#include "core/bytes.h"
#include "core/version.h"

namespace memfathom {

struct FrameworkPolicy {
  Version torch_version{2, 15};
  // Compute capability as major * 10 + minor: 8.0 is 80.
  int compute_capability = 80;

  // cuBLAS workspace of each (thread, stream) that runs a gemm; taken through the caching allocator
  // and kept.
  Bytes cublas_workspace{8519680};
  // cuBLASLt (addmm with a bias epilogue): a workspace of its own, zero when it shares cuBLAS's.
  Bytes cublaslt_workspace{0};

  // Library workspaces and the temporaries inside kernels' host code are real allocations. The
  // accounts of `allocator.backend: none` leave them out, as every tool that looks at tensors only.
  bool count_workspaces = true;

  // Where nobody else can see it, the framework works in place: autograd adds a second gradient
  // into the first one's buffer, the attention fallback adds its mask. Fake tensors, and so the
  // tensor-level accounts, never do.
  bool in_place_shortcuts = true;

  // torch >= 2.0: scaled_dot_product_attention has fused kernels.
  bool has_fused_attention = true;

  // torch >= 2.14: the memory-efficient kernel takes fewer key heads than query heads; 2.13 refuses
  // them.
  bool efficient_attention_has_gqa = true;

  // torch >= 2.5: scaled_dot_product_attention keeps grouped k/v unexpanded with enable_gqa.
  bool attention_has_gqa = true;

  // torch >= 2.9: RMSNorm is one kernel. Before it was elementary operations, in C++ or in scripts.
  bool rms_norm_is_fused = true;

  // torch >= 2.15: group norm computes in channels-last order; before, its kernel makes contiguous
  // copies and a contiguous result.
  bool group_norm_keeps_layout = true;

  // torch < 1.11: softmax and log_softmax keep their input beside their output.
  bool softmax_keeps_input = false;

  // bitsandbytes < 0.43.2: the input of every 4-bit product is kept for backward although nothing
  // needs it (its change 1270).
  bool bitsandbytes_keeps_input = false;

  // bitsandbytes < 0.43: 4-bit weights were quantized from fp16 whatever their type, and come back
  // as fp16 before they are cast to the type of the product (its change 970).
  bool bitsandbytes_quantizes_from_fp16 = false;

  // bitsandbytes < 0.45: int8 products worked on tiles, and narrowed their input by columns too.
  bool bitsandbytes_tiles_int8 = false;

  // Sets the three above.
  void set_bitsandbytes(Version version);

  // The policy for a PyTorch version ("2.6", "2.1.1") on a compute capability. Empty version: the
  // default's.
  static FrameworkPolicy for_stack(std::string_view torch_version, int compute_capability);
};

}  // namespace memfathom

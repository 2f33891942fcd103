// The double of cuBLASLt.
#include <cublasLt.h>

#include <algorithm>
#include <cstring>

#include "tests/kernels/devices/cuda/doubles/matrix_product.h"

namespace doubles = memfathom::doubles;
using doubles::create;
using doubles::destroy;
using doubles::kept;
using doubles::multiply;
using doubles::refuse_blas;

namespace {

struct LtMatmul {
  cublasComputeType_t compute = CUBLAS_COMPUTE_32F;
  cublasOperation_t a = CUBLAS_OP_N, b = CUBLAS_OP_N;
  cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_DEFAULT;
  const void* bias = nullptr;
};
struct LtLayout {
  cudaDataType type = CUDA_R_32F;
  std::uint64_t rows = 0, columns = 0;
  std::int64_t leading = 0;
};
// What the caller promises of its workspace and of the addresses of a, b, c and d.
struct LtPreference {
  std::size_t workspace = 0;
  std::uint32_t alignment[4] = {256, 256, 256, 256};
};
constexpr std::size_t kLtWorkspace = 1 << 16;

}  // namespace

extern "C" {

cublasStatus_t cublasLtCreate(cublasLtHandle_t* handle) {
  return create("cublasLtCreate", "cublasLt", handle, 0);
}
cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle) {
  return destroy<int>("cublasLtDestroy", "cublasLt", handle);
}

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* matmul, cublasComputeType_t compute,
                                        cudaDataType_t scale) {
  if (scale != CUDA_R_32F)
    return refuse_blas("cublasLtMatmulDescCreate", "the scale type does not go with fp32");
  LtMatmul kept_matmul;
  kept_matmul.compute = compute;
  return create("cublasLtMatmulDescCreate", "cublasLt matmul", matmul, kept_matmul);
}
cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t matmul) {
  return destroy<LtMatmul>("cublasLtMatmulDescDestroy", "cublasLt matmul", matmul);
}

cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t matmul,
                                              cublasLtMatmulDescAttributes_t name,
                                              const void* value, std::size_t size) {
  if (const int injected = doubles::enter("cublasLtMatmulDescSetAttribute"))
    return static_cast<cublasStatus_t>(injected);
  if (!doubles::alive("cublasLt matmul", matmul))
    return refuse_blas("cublasLtMatmulDescSetAttribute", "it does not exist");
  LtMatmul& target = kept<LtMatmul>()[matmul];
  void* place_of = nullptr;
  std::size_t wanted = 0;
  switch (name) {
    case CUBLASLT_MATMUL_DESC_TRANSA:
      place_of = &target.a;
      wanted = sizeof target.a;
      break;
    case CUBLASLT_MATMUL_DESC_TRANSB:
      place_of = &target.b;
      wanted = sizeof target.b;
      break;
    case CUBLASLT_MATMUL_DESC_EPILOGUE:
      place_of = &target.epilogue;
      wanted = sizeof target.epilogue;
      break;
    case CUBLASLT_MATMUL_DESC_BIAS_POINTER:
      place_of = &target.bias;
      wanted = sizeof target.bias;
      break;
    default: return refuse_blas("cublasLtMatmulDescSetAttribute", "unknown attribute");
  }
  if (size != wanted)
    return refuse_blas("cublasLtMatmulDescSetAttribute", "the value has another size");
  std::memcpy(place_of, value, size);
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t* layout, cudaDataType type,
                                          std::uint64_t rows, std::uint64_t columns,
                                          std::int64_t leading) {
  return create("cublasLtMatrixLayoutCreate", "cublasLt layout", layout,
                LtLayout{type, rows, columns, leading});
}
cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout) {
  return destroy<LtLayout>("cublasLtMatrixLayoutDestroy", "cublasLt layout", layout);
}

cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t* preference) {
  return create("cublasLtMatmulPreferenceCreate", "cublasLt preference", preference,
                LtPreference{});
}
cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference) {
  return destroy<LtPreference>("cublasLtMatmulPreferenceDestroy", "cublasLt preference",
                               preference);
}
cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t preference,
                                                    cublasLtMatmulPreferenceAttributes_t name,
                                                    const void* value, std::size_t size) {
  if (const int injected = doubles::enter("cublasLtMatmulPreferenceSetAttribute"))
    return static_cast<cublasStatus_t>(injected);
  LtPreference& promised = kept<LtPreference>()[preference];
  const int operand = name - CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES;  // a, b, c, d in order
  if (name == CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES && size == sizeof promised.workspace) {
    std::memcpy(&promised.workspace, value, size);
  } else if (operand >= 0 && operand < 4 && size == sizeof promised.alignment[0]) {
    std::memcpy(&promised.alignment[operand], value, size);
  } else {
    return refuse_blas("cublasLtMatmulPreferenceSetAttribute", "unknown attribute or size");
  }
  return CUBLAS_STATUS_SUCCESS;
}

// The algorithm wants kLtWorkspace where it is allowed that much, else nothing: as in the real
// library, the caller must hand over what the preference promised.
cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t handle, cublasLtMatmulDesc_t,
                                              cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                              cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t,
                                              cublasLtMatmulPreference_t preference, int wanted,
                                              cublasLtMatmulHeuristicResult_t* results,
                                              int* found) {
  *found = 0;
  if (const int injected = doubles::enter("cublasLtMatmulAlgoGetHeuristic"))
    return static_cast<cublasStatus_t>(injected);
  if (!doubles::alive("cublasLt", handle))
    return refuse_blas("cublasLtMatmulAlgoGetHeuristic", "the handle does not exist");
  for (const auto layout : {a, b, c}) {
    if (!doubles::alive("cublasLt layout", layout))
      return refuse_blas("cublasLtMatmulAlgoGetHeuristic", "a layout does not exist");
  }
  // A fault here means that the library knows no algorithm: success, and nothing found.
  if (wanted < 1 || doubles::enter("cublasLtMatmulAlgoGetHeuristic(found)") != 0)
    return CUBLAS_STATUS_SUCCESS;
  *results = cublasLtMatmulHeuristicResult_t{};
  const LtPreference& promised = kept<LtPreference>()[preference];
  results->workspaceSize = promised.workspace >= kLtWorkspace ? kLtWorkspace : 0;
  results->algo.data[0] = results->workspaceSize;
  for (int i = 0; i < 4; ++i) results->algo.data[i + 1] = promised.alignment[i];
  *found = 1;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t matmul,
                              const void* alpha, const void* A, cublasLtMatrixLayout_t Adesc,
                              const void* B, cublasLtMatrixLayout_t Bdesc, const void* beta,
                              const void* C, cublasLtMatrixLayout_t, void* D,
                              cublasLtMatrixLayout_t Ddesc, const cublasLtMatmulAlgo_t* algo,
                              void* workspace, std::size_t size, cudaStream_t stream) {
  const char* function = "cublasLtMatmul";
  if (const int injected = doubles::enter(function)) return static_cast<cublasStatus_t>(injected);
  if (doubles::sticky_error() != 0) return CUBLAS_STATUS_EXECUTION_FAILED;
  if (!doubles::alive("cublasLt", handle))
    return refuse_blas(function, "the handle does not exist");
  if (!doubles::alive("stream", stream)) return refuse_blas(function, "the stream does not exist");
  if (size < algo->data[0]) return refuse_blas(function, "the workspace is too small");
  if (size > 0 && (doubles::host_view(workspace, size) == nullptr ||
                   reinterpret_cast<std::uint64_t>(workspace) % 256 != 0)) {
    return refuse_blas(function, "the workspace is misaligned or not device memory of that size");
  }
  const void* const operands[] = {A, B, C, D};
  for (int i = 0; i < 4; ++i) {
    if (reinterpret_cast<std::uint64_t>(operands[i]) % algo->data[i + 1] != 0)
      return refuse_blas(function, "an operand is not aligned as was promised");
  }
  if (algo->data[0] > 0) doubles::enter("workspace used by cublasLtMatmul");
  if (C != D) return refuse_blas(function, "this double works in place only");
  const LtMatmul& m = kept<LtMatmul>()[matmul];
  const LtLayout& a = kept<LtLayout>()[Adesc];
  const LtLayout& b = kept<LtLayout>()[Bdesc];
  const LtLayout& d = kept<LtLayout>()[Ddesc];
  const std::uint64_t depth = m.a == CUBLAS_OP_N ? a.columns : a.rows;
  const std::uint64_t rows = m.a == CUBLAS_OP_N ? a.rows : a.columns;
  const std::uint64_t columns = m.b == CUBLAS_OP_N ? b.columns : b.rows;
  if (rows != d.rows || columns != d.columns ||
      depth != (m.b == CUBLAS_OP_N ? b.rows : b.columns)) {
    return refuse_blas(function, "the matrices do not fit together");
  }
  if (m.epilogue == CUBLASLT_EPILOGUE_BIAS && m.bias == nullptr)
    return refuse_blas(function, "the bias is missing");
  if (reinterpret_cast<std::uint64_t>(m.bias) % algo->data[4] != 0)
    return refuse_blas(function, "the bias is not aligned as was promised of d");
  return multiply(function, {static_cast<std::int64_t>(rows),
                             static_cast<std::int64_t>(columns),
                             static_cast<std::int64_t>(depth),
                             1,
                             {A, m.a, a.type, a.leading, 0, 0, 0},
                             {B, m.b, b.type, b.leading, 0, 0, 0},
                             {D, CUBLAS_OP_N, d.type, d.leading, 0, 0, 0},
                             m.compute,
                             alpha,
                             beta,
                             m.epilogue == CUBLASLT_EPILOGUE_BIAS ? m.bias : nullptr});
}

}  // extern "C"

// The double of cuBLAS and cuBLASLt: products on the host, refused where the real library refuses
// them.
#include <cublasLt.h>
#include <cublas_v2.h>

#include <complex>
#include <cstring>
#include <map>
#include <string>

#include "core/dtype.h"
#include "kernels/element/load.h"
#include "tests/kernels/cuda/doubles/control.h"

namespace doubles = memfathom::doubles;
using memfathom::DType;

namespace {

cublasStatus_t refuse(const char* function, const std::string& why,
                      cublasStatus_t status = CUBLAS_STATUS_INVALID_VALUE) {
  doubles::refuse(function, why, status);
  return status;
}

struct BlasState {
  bool has_stream = false;
};

// Opaque descriptors: what the library would keep behind them.
template <typename Kept>
std::map<const void*, Kept>& kept() {
  static std::map<const void*, Kept> all;
  return all;
}

struct Side {
  const void* data = nullptr;
  cublasOperation_t operation = CUBLAS_OP_N;
  cudaDataType type = CUDA_R_32F;
  std::int64_t leading = 0;
  std::int64_t batch_stride = 0;
  std::int64_t rows = 0, columns = 0;  // as stored: before the operation
};

struct Product {
  std::int64_t m = 0, n = 0, k = 0, batch = 1;
  Side a, b, c;
  cublasComputeType_t compute = CUBLAS_COMPUTE_32F;
  const void* alpha = nullptr;
  const void* beta = nullptr;
  const void* bias = nullptr;
};

bool to_dtype(cudaDataType type, DType& dtype) {
  switch (type) {
    case CUDA_R_64F: dtype = DType::kFp64; return true;
    case CUDA_R_32F: dtype = DType::kFp32; return true;
    case CUDA_R_16F: dtype = DType::kFp16; return true;
    case CUDA_R_16BF: dtype = DType::kBf16; return true;
    case CUDA_C_32F: dtype = DType::kComplex64; return true;
    default: return false;
  }
}

// The table of cublasGemmEx: which compute type goes with which pair of types.
bool supported(const Product& p) {
  if (p.a.type != p.b.type) return false;
  switch (p.compute) {
    case CUBLAS_COMPUTE_64F: return p.a.type == CUDA_R_64F && p.c.type == CUDA_R_64F;
    case CUBLAS_COMPUTE_32F:
      if (p.a.type == CUDA_R_16F || p.a.type == CUDA_R_16BF)
        return p.c.type == p.a.type || p.c.type == CUDA_R_32F;
      return (p.a.type == CUDA_R_32F || p.a.type == CUDA_C_32F) && p.c.type == p.a.type;
    default: return false;
  }
}

using Number = std::complex<double>;

struct Elements {
  void* data = nullptr;
  DType dtype = DType::kFp32;

  Number get(std::int64_t i) const {
    if (dtype == DType::kComplex64) {
      const auto value = memfathom::element::load<memfathom::element::Complex>(data, dtype, i);
      return {value.re, value.im};
    }
    return {memfathom::element::load<double>(data, dtype, i), 0};
  }
  void set(std::int64_t i, Number value) const {
    if (dtype == DType::kComplex64) {
      memfathom::element::store(data, dtype, i,
                                memfathom::element::Complex(static_cast<float>(value.real()),
                                                            static_cast<float>(value.imag())));
    } else {
      memfathom::element::store<double>(data, dtype, i, value.real());
    }
  }
};

Number scalar(const void* value, cublasComputeType_t compute, cudaDataType type) {
  if (compute == CUBLAS_COMPUTE_64F) return *static_cast<const double*>(value);
  const auto* parts = static_cast<const float*>(value);
  return {parts[0], type == CUDA_C_32F ? parts[1] : 0.0F};
}

std::int64_t place(const Side& side, std::int64_t row, std::int64_t column) {
  return side.operation == CUBLAS_OP_N ? column * side.leading + row : row * side.leading + column;
}

// Checks a matrix as cuBLAS and the device would: leading dimension, and every batch inside live
// device memory.
bool view(const char* function, const char* name, const Side& side, std::int64_t batch,
          Elements& elements) {
  if (side.leading < std::max<std::int64_t>(1, side.rows)) {
    refuse(function, std::string("the leading dimension of ") + name + " is " +
                         std::to_string(side.leading) + ", below its " + std::to_string(side.rows) +
                         " rows");
    return false;
  }
  if (!to_dtype(side.type, elements.dtype)) return false;
  const std::int64_t last =
      (batch - 1) * side.batch_stride + (side.columns - 1) * side.leading + side.rows;
  const auto bytes = static_cast<std::size_t>(last * memfathom::bits_of(elements.dtype) / 8);
  elements.data = doubles::host_view(side.data, bytes);
  if (elements.data == nullptr)
    refuse(function, std::string(name) + " is not device memory of that extent");
  return elements.data != nullptr;
}

// Not an error of cuBLAS, but one of ours: the default stream is not ordered with the device's own.
void note_default_stream(const char* function, cublasHandle_t handle) {
  if (!kept<BlasState>()[handle].has_stream)
    doubles::refuse(function, "the handle runs on the default stream", 0);
}

cublasStatus_t multiply(const char* function, Product p) {
  if (p.m < 0 || p.n < 0 || p.k < 0 || p.batch < 1)
    return refuse(function, "a dimension is negative");
  if (!supported(p))
    return refuse(function, "the types are not supported together", CUBLAS_STATUS_NOT_SUPPORTED);
  const auto shape = [](Side& side, std::int64_t rows, std::int64_t columns) {
    side.rows = side.operation == CUBLAS_OP_N ? rows : columns;
    side.columns = side.operation == CUBLAS_OP_N ? columns : rows;
  };
  shape(p.a, p.m, p.k);
  shape(p.b, p.k, p.n);
  shape(p.c, p.m, p.n);
  Elements a, b, c, bias;
  if (!view(function, "A", p.a, p.batch, a) || !view(function, "B", p.b, p.batch, b) ||
      !view(function, "C", p.c, p.batch, c)) {
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  if (p.bias != nullptr) {
    Side side{p.bias, CUBLAS_OP_N, p.c.type, p.m, 0, p.m, 1};
    if (!view(function, "bias", side, 1, bias)) return CUBLAS_STATUS_INVALID_VALUE;
  }
  const Number alpha = scalar(p.alpha, p.compute, p.a.type);
  const Number beta = scalar(p.beta, p.compute, p.a.type);
  const auto factor = [](const Side& side, const Elements& elements, std::int64_t at) {
    const Number value = elements.get(at);
    return side.operation == CUBLAS_OP_C ? std::conj(value) : value;
  };
  for (std::int64_t batch = 0; batch < p.batch; ++batch) {
    for (std::int64_t column = 0; column < p.n; ++column) {
      for (std::int64_t row = 0; row < p.m; ++row) {
        Number sum = 0;
        for (std::int64_t i = 0; i < p.k; ++i) {
          sum += factor(p.a, a, batch * p.a.batch_stride + place(p.a, row, i)) *
                 factor(p.b, b, batch * p.b.batch_stride + place(p.b, i, column));
        }
        const std::int64_t at = batch * p.c.batch_stride + place(p.c, row, column);
        Number value = alpha * sum;
        if (beta != 0.0) value += beta * c.get(at);  // beta 0 must not read: C may hold anything
        if (p.bias != nullptr) value += bias.get(row);
        c.set(at, value);
      }
    }
  }
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t check_handle(const char* function, cublasHandle_t handle) {
  if (!doubles::alive("cublas", handle))
    return refuse(function, "the handle does not exist", CUBLAS_STATUS_NOT_INITIALIZED);
  return doubles::sticky_error() != 0 ? CUBLAS_STATUS_EXECUTION_FAILED : CUBLAS_STATUS_SUCCESS;
}

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

template <typename Kept, typename Handle>
cublasStatus_t create(const char* function, const char* kind, Handle* handle, const Kept& value) {
  if (const int injected = doubles::enter(function)) return static_cast<cublasStatus_t>(injected);
  *handle = static_cast<Handle>(doubles::new_handle());
  doubles::created(kind, *handle);
  kept<Kept>()[*handle] = value;
  return CUBLAS_STATUS_SUCCESS;
}

template <typename Kept>
cublasStatus_t destroy(const char* function, const char* kind, const void* handle) {
  doubles::enter(function);
  kept<Kept>().erase(handle);
  return doubles::destroyed(kind, handle) ? CUBLAS_STATUS_SUCCESS
                                          : refuse(function, "it does not exist");
}

}  // namespace

extern "C" {

cublasStatus_t cublasCreate_v2(cublasHandle_t* handle) {
  return create("cublasCreate", "cublas", handle, BlasState{});
}
cublasStatus_t cublasDestroy_v2(cublasHandle_t handle) {
  return destroy<BlasState>("cublasDestroy", "cublas", handle);
}

cublasStatus_t cublasSetStream_v2(cublasHandle_t handle, cudaStream_t stream) {
  if (const int injected = doubles::enter("cublasSetStream"))
    return static_cast<cublasStatus_t>(injected);
  if (!doubles::alive("stream", stream))
    return refuse("cublasSetStream", "the stream does not exist");
  kept<BlasState>()[handle].has_stream = true;
  return check_handle("cublasSetStream", handle);
}

cublasStatus_t cublasSetMathMode(cublasHandle_t handle, cublasMath_t mode) {
  if (const int injected = doubles::enter("cublasSetMathMode"))
    return static_cast<cublasStatus_t>(injected);
  if (mode == CUBLAS_TF32_TENSOR_OP_MATH)
    doubles::refuse("cublasSetMathMode", "TF32 was switched on", 0);
  return check_handle("cublasSetMathMode", handle);
}

cublasStatus_t cublasSetWorkspace_v2(cublasHandle_t handle, void* workspace, std::size_t size) {
  if (const int injected = doubles::enter("cublasSetWorkspace"))
    return static_cast<cublasStatus_t>(injected);
  if (reinterpret_cast<std::uint64_t>(workspace) % 256 != 0)
    return refuse("cublasSetWorkspace", "the workspace is misaligned");
  if (size > 0 && doubles::host_view(workspace, size) == nullptr) {
    return refuse("cublasSetWorkspace", "the workspace is not device memory of that size");
  }
  return check_handle("cublasSetWorkspace", handle);
}

cublasStatus_t cublasGetProperty(libraryPropertyType type, int* value) {
  *value = type == MAJOR_VERSION ? 13 : type == MINOR_VERSION ? 1 : 2;
  return static_cast<cublasStatus_t>(doubles::enter("cublasGetProperty"));
}

const char* cublasGetStatusName(cublasStatus_t status) {
  switch (status) {
    case CUBLAS_STATUS_NOT_INITIALIZED: return "CUBLAS_STATUS_NOT_INITIALIZED";
    case CUBLAS_STATUS_ALLOC_FAILED: return "CUBLAS_STATUS_ALLOC_FAILED";
    case CUBLAS_STATUS_INVALID_VALUE: return "CUBLAS_STATUS_INVALID_VALUE";
    case CUBLAS_STATUS_EXECUTION_FAILED: return "CUBLAS_STATUS_EXECUTION_FAILED";
    case CUBLAS_STATUS_NOT_SUPPORTED: return "CUBLAS_STATUS_NOT_SUPPORTED";
    default: return "CUBLAS_STATUS_OTHER";
  }
}

cublasStatus_t cublasGemmEx(cublasHandle_t handle, cublasOperation_t transa,
                            cublasOperation_t transb, int m, int n, int k, const void* alpha,
                            const void* A, cudaDataType Atype, int lda, const void* B,
                            cudaDataType Btype, int ldb, const void* beta, void* C,
                            cudaDataType Ctype, int ldc, cublasComputeType_t computeType,
                            cublasGemmAlgo_t) {
  if (const int injected = doubles::enter("cublasGemmEx"))
    return static_cast<cublasStatus_t>(injected);
  if (const cublasStatus_t status = check_handle("cublasGemmEx", handle);
      status != CUBLAS_STATUS_SUCCESS)
    return status;
  note_default_stream("cublasGemmEx", handle);
  return multiply("cublasGemmEx", {m,
                                   n,
                                   k,
                                   1,
                                   {A, transa, Atype, lda, 0, 0, 0},
                                   {B, transb, Btype, ldb, 0, 0, 0},
                                   {C, CUBLAS_OP_N, Ctype, ldc, 0, 0, 0},
                                   computeType,
                                   alpha,
                                   beta,
                                   nullptr});
}

cublasStatus_t cublasGemmStridedBatchedEx(cublasHandle_t handle, cublasOperation_t transa,
                                          cublasOperation_t transb, int m, int n, int k,
                                          const void* alpha, const void* A, cudaDataType Atype,
                                          int lda, long long int strideA, const void* B,
                                          cudaDataType Btype, int ldb, long long int strideB,
                                          const void* beta, void* C, cudaDataType Ctype, int ldc,
                                          long long int strideC, int batchCount,
                                          cublasComputeType_t computeType, cublasGemmAlgo_t) {
  const char* function = "cublasGemmStridedBatchedEx";
  if (const int injected = doubles::enter(function)) return static_cast<cublasStatus_t>(injected);
  if (const cublasStatus_t status = check_handle(function, handle); status != CUBLAS_STATUS_SUCCESS)
    return status;
  note_default_stream(function, handle);
  return multiply(function, {m,
                             n,
                             k,
                             batchCount,
                             {A, transa, Atype, lda, strideA, 0, 0},
                             {B, transb, Btype, ldb, strideB, 0, 0},
                             {C, CUBLAS_OP_N, Ctype, ldc, strideC, 0, 0},
                             computeType,
                             alpha,
                             beta,
                             nullptr});
}

cublasStatus_t cublasLtCreate(cublasLtHandle_t* handle) {
  return create("cublasLtCreate", "cublasLt", handle, 0);
}
cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle) {
  return destroy<int>("cublasLtDestroy", "cublasLt", handle);
}

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* matmul, cublasComputeType_t compute,
                                        cudaDataType_t scale) {
  if (scale != CUDA_R_32F)
    return refuse("cublasLtMatmulDescCreate", "the scale type does not go with fp32");
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
    return refuse("cublasLtMatmulDescSetAttribute", "it does not exist");
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
    default: return refuse("cublasLtMatmulDescSetAttribute", "unknown attribute");
  }
  if (size != wanted) return refuse("cublasLtMatmulDescSetAttribute", "the value has another size");
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
    return refuse("cublasLtMatmulPreferenceSetAttribute", "unknown attribute or size");
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
    return refuse("cublasLtMatmulAlgoGetHeuristic", "the handle does not exist");
  for (const auto layout : {a, b, c}) {
    if (!doubles::alive("cublasLt layout", layout))
      return refuse("cublasLtMatmulAlgoGetHeuristic", "a layout does not exist");
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
  if (!doubles::alive("cublasLt", handle)) return refuse(function, "the handle does not exist");
  if (!doubles::alive("stream", stream)) return refuse(function, "the stream does not exist");
  if (size < algo->data[0]) return refuse(function, "the workspace is too small");
  if (size > 0 && (doubles::host_view(workspace, size) == nullptr ||
                   reinterpret_cast<std::uint64_t>(workspace) % 256 != 0)) {
    return refuse(function, "the workspace is misaligned or not device memory of that size");
  }
  const void* const operands[] = {A, B, C, D};
  for (int i = 0; i < 4; ++i) {
    if (reinterpret_cast<std::uint64_t>(operands[i]) % algo->data[i + 1] != 0)
      return refuse(function, "an operand is not aligned as was promised");
  }
  if (algo->data[0] > 0) doubles::enter("workspace used by cublasLtMatmul");
  if (C != D) return refuse(function, "this double works in place only");
  const LtMatmul& m = kept<LtMatmul>()[matmul];
  const LtLayout& a = kept<LtLayout>()[Adesc];
  const LtLayout& b = kept<LtLayout>()[Bdesc];
  const LtLayout& d = kept<LtLayout>()[Ddesc];
  const std::uint64_t depth = m.a == CUBLAS_OP_N ? a.columns : a.rows;
  const std::uint64_t rows = m.a == CUBLAS_OP_N ? a.rows : a.columns;
  const std::uint64_t columns = m.b == CUBLAS_OP_N ? b.columns : b.rows;
  if (rows != d.rows || columns != d.columns ||
      depth != (m.b == CUBLAS_OP_N ? b.rows : b.columns)) {
    return refuse(function, "the matrices do not fit together");
  }
  if (m.epilogue == CUBLASLT_EPILOGUE_BIAS && m.bias == nullptr)
    return refuse(function, "the bias is missing");
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

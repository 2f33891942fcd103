#include "kernels/devices/cuda/gemm.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "core/error.h"
#include "kernels/devices/cuda/status.h"

namespace memfathom::cuda {
namespace {

// Scalars are fp32 pairs for complex64, fp64 for fp64, fp32 for everything else.
union Scalar {
  double fp64;
  float fp32[2];
};

struct GemmTypes {
  cudaDataType input, output, scale;
  cublasComputeType_t compute;

  Scalar scalar(double value) const {
    Scalar result{};
    if (scale == CUDA_R_64F) {
      result.fp64 = value;
    } else {
      result.fp32[0] = static_cast<float>(value);
      result.fp32[1] = 0;
    }
    return result;
  }
};

cudaDataType type_of(DType type) {
  switch (type) {
    case DType::kFp64: return CUDA_R_64F;
    case DType::kFp32: return CUDA_R_32F;
    case DType::kFp16: return CUDA_R_16F;
    case DType::kBf16: return CUDA_R_16BF;
    case DType::kComplex64: return CUDA_C_32F;
    case DType::kInt64:
    case DType::kInt32:
    case DType::kInt8:
    case DType::kUint8:
    case DType::kBool:
    case DType::kNf4: break;
  }
  throw Error(ErrorKind::kInternal,
              fmt::format("gemm: cuBLAS has no product of {}", to_string(type)));
}

// 16-bit operands are accumulated in fp32; fp32 is not rounded to TF32.
GemmTypes types_of(const GemmCall& call) {
  const bool same = call.a.dtype == call.b.dtype;
  const bool widened = is_16bit_float(call.a.dtype) && call.out.dtype == DType::kFp32;
  if (!same || (call.out.dtype != call.a.dtype && !widened)) {
    throw Error(
        ErrorKind::kInternal,
        fmt::format("gemm: cuBLAS has no product of {} and {} into {}", to_string(call.a.dtype),
                    to_string(call.b.dtype), to_string(call.out.dtype)));
  }
  GemmTypes types{type_of(call.a.dtype), type_of(call.out.dtype), CUDA_R_32F, CUBLAS_COMPUTE_32F};
  if (call.a.dtype == DType::kFp64) {
    types.scale = CUDA_R_64F;
    types.compute = CUBLAS_COMPUTE_64F;
  } else if (call.a.dtype == DType::kComplex64) {
    types.scale = CUDA_C_32F;
  }
  return types;
}

struct DestroyMatmul {
  void operator()(cublasLtMatmulDesc_t raw) const { cublasLtMatmulDescDestroy(raw); }
};
struct DestroyMatrix {
  void operator()(cublasLtMatrixLayout_t raw) const { cublasLtMatrixLayoutDestroy(raw); }
};
struct DestroyPreference {
  void operator()(cublasLtMatmulPreference_t raw) const { cublasLtMatmulPreferenceDestroy(raw); }
};
using Matmul = std::unique_ptr<std::remove_pointer_t<cublasLtMatmulDesc_t>, DestroyMatmul>;
using MatrixLayout = std::unique_ptr<std::remove_pointer_t<cublasLtMatrixLayout_t>, DestroyMatrix>;
using Preference =
    std::unique_ptr<std::remove_pointer_t<cublasLtMatmulPreference_t>, DestroyPreference>;

template <typename Value>
void set(cublasLtMatmulDesc_t matmul, cublasLtMatmulDescAttributes_t name, const Value& value) {
  check(cublasLtMatmulDescSetAttribute(matmul, name, &value, sizeof value),
        "cublasLtMatmulDescSetAttribute");
}

Matmul make_matmul(const GemmTypes& types, const GemmLayout& layout, const void* bias) {
  cublasLtMatmulDesc_t raw = nullptr;
  check(cublasLtMatmulDescCreate(&raw, types.compute, types.scale), "cublasLtMatmulDescCreate");
  Matmul matmul(raw);
  set(raw, CUBLASLT_MATMUL_DESC_TRANSA, layout.a.operation);
  set(raw, CUBLASLT_MATMUL_DESC_TRANSB, layout.b.operation);
  set(raw, CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_BIAS);
  set(raw, CUBLASLT_MATMUL_DESC_BIAS_POINTER, bias);
  return matmul;
}

MatrixLayout make_matrix(cudaDataType type, const GemmMatrix& matrix, std::int64_t rows,
                         std::int64_t columns) {
  const bool plain = matrix.operation == CUBLAS_OP_N;
  cublasLtMatrixLayout_t raw = nullptr;
  check(cublasLtMatrixLayoutCreate(&raw, type, static_cast<std::uint64_t>(plain ? rows : columns),
                                   static_cast<std::uint64_t>(plain ? columns : rows),
                                   matrix.leading),
        "cublasLtMatrixLayoutCreate");
  return MatrixLayout(raw);
}

template <typename Value>
void set(cublasLtMatmulPreference_t preference, cublasLtMatmulPreferenceAttributes_t name,
         const Value& value) {
  check(cublasLtMatmulPreferenceSetAttribute(preference, name, &value, sizeof value),
        "cublasLtMatmulPreferenceSetAttribute");
}

// A divisor of the address, up to the 256 that cuBLASLt assumes: views may begin anywhere.
std::uint32_t alignment_of(const void* data) {
  const auto address = reinterpret_cast<std::uintptr_t>(data);
  std::uint32_t alignment = 256;
  while (address % alignment != 0) alignment /= 2;
  return alignment;
}

// cuBLASLt has no attribute for the bias's alignment: its loads are as wide as the stores into d,
// so PyTorch sets d's alignment to the smaller of both.
Preference make_preference(std::size_t workspace, const GemmLayout& layout, const void* bias) {
  cublasLtMatmulPreference_t raw = nullptr;
  check(cublasLtMatmulPreferenceCreate(&raw), "cublasLtMatmulPreferenceCreate");
  Preference preference(raw);
  set(raw, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, workspace);
  set(raw, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, alignment_of(layout.a.data));
  set(raw, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, alignment_of(layout.b.data));
  set(raw, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, alignment_of(layout.c.data));
  set(raw, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES,
      std::min(alignment_of(layout.c.data), alignment_of(bias)));
  return preference;
}

}  // namespace

void Gemm::set_workspace(void* workspace, std::size_t bytes) {
  if (blas_ && workspace != nullptr) {
    check(cublasSetWorkspace(blas_.get(), workspace, bytes), "cublasSetWorkspace");
  } else if (blas_) {
    // Setting the stream restores cuBLAS's own workspace; the previous one may be freed.
    check(cublasSetStream(blas_.get(), stream_), "cublasSetStream");
  }
  workspace_ = workspace;
  workspace_bytes_ = bytes;
}

cublasHandle_t Gemm::blas() {
  if (!blas_) {
    CublasHandle fresh = make_cublas_handle(stream_);
    if (workspace_ != nullptr) {
      check(cublasSetWorkspace(fresh.get(), workspace_, workspace_bytes_), "cublasSetWorkspace");
    }
    blas_ = std::move(fresh);
  }
  return blas_.get();
}

// PyTorch's conditions for using cuBLASLt in addmm, as far as they depend on a single product.
BiasPath Gemm::bias_path(const GemmCall& call, const GemmLayout& layout) {
  if (!call.bias) return BiasPath::kNone;
  const bool type = call.out.dtype == DType::kFp32 || is_16bit_float(call.out.dtype);
  const bool vector = call.bias.dtype == call.out.dtype && call.bias.shape.rank() > 0 &&
                      (call.bias.strides[-1] == 1 || call.bias.shape[-1] == 1) &&
                      call.bias.shape[-1] == layout.m;
  const bool same = call.a.dtype == call.out.dtype;
  return type && same && vector && layout.bias_along_rows && layout.batch == 1 ? BiasPath::kEpilogue
                                                                               : BiasPath::kBefore;
}

cublasStatus_t Gemm::run(const GemmCall& call, const GemmLayout& layout, double beta) {
  const GemmTypes types = types_of(call);
  const Scalar alpha = types.scalar(call.alpha);
  const Scalar old = types.scalar(beta);
  const auto narrow = [](std::int64_t value) { return static_cast<int>(value); };
  const GemmMatrix& a = layout.a;
  const GemmMatrix& b = layout.b;
  const GemmMatrix& c = layout.c;
  cublasHandle_t handle = blas();
  if (layout.batch == 1) {
    return cublasGemmEx(handle, a.operation, b.operation, narrow(layout.m), narrow(layout.n),
                        narrow(layout.k), &alpha, a.data, types.input, narrow(a.leading), b.data,
                        types.input, narrow(b.leading), &old, c.data, types.output,
                        narrow(c.leading), types.compute, CUBLAS_GEMM_DEFAULT);
  }
  return cublasGemmStridedBatchedEx(
      handle, a.operation, b.operation, narrow(layout.m), narrow(layout.n), narrow(layout.k),
      &alpha, a.data, types.input, narrow(a.leading), a.batch_stride, b.data, types.input,
      narrow(b.leading), b.batch_stride, &old, c.data, types.output, narrow(c.leading),
      c.batch_stride, narrow(layout.batch), types.compute, CUBLAS_GEMM_DEFAULT);
}

cublasStatus_t Gemm::run_with_bias(const GemmCall& call, const GemmLayout& layout) {
  if (!blas_lt_) blas_lt_ = make_cublaslt_handle();
  const GemmTypes types = types_of(call);
  const Scalar alpha = types.scalar(call.alpha);
  const Scalar beta = types.scalar(call.beta);
  const Matmul matmul = make_matmul(types, layout, call.bias.data);
  const MatrixLayout a = make_matrix(types.input, layout.a, layout.m, layout.k);
  const MatrixLayout b = make_matrix(types.input, layout.b, layout.k, layout.n);
  const MatrixLayout c = make_matrix(types.output, layout.c, layout.m, layout.n);
  const Preference preference = make_preference(workspace_bytes_, layout, call.bias.data);
  cublasLtMatmulHeuristicResult_t choice{};
  int found = 0;
  const cublasStatus_t asked =
      cublasLtMatmulAlgoGetHeuristic(blas_lt_.get(), matmul.get(), a.get(), b.get(), c.get(),
                                     c.get(), preference.get(), 1, &choice, &found);
  if (asked == CUBLAS_STATUS_NOT_SUPPORTED) return asked;
  check(asked, "cublasLtMatmulAlgoGetHeuristic");
  if (found == 0) return CUBLAS_STATUS_NOT_SUPPORTED;
  return cublasLtMatmul(blas_lt_.get(), matmul.get(), &alpha, layout.a.data, a.get(), layout.b.data,
                        b.get(), &beta, layout.c.data, c.get(), layout.c.data, c.get(),
                        &choice.algo, workspace_, workspace_bytes_, stream_);
}

}  // namespace memfathom::cuda

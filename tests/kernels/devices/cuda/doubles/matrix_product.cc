#include "tests/kernels/devices/cuda/doubles/matrix_product.h"

#include <algorithm>
#include <complex>

#include "core/dtype.h"
#include "kernels/devices/element/load.h"

namespace memfathom::doubles {
namespace {

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
      const auto value = element::load<element::Complex>(data, dtype, i);
      return {value.re, value.im};
    }
    return {element::load<double>(data, dtype, i), 0};
  }
  void set(std::int64_t i, Number value) const {
    if (dtype == DType::kComplex64) {
      element::store(
          data, dtype, i,
          element::Complex(static_cast<float>(value.real()), static_cast<float>(value.imag())));
    } else {
      element::store<double>(data, dtype, i, value.real());
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
    refuse_blas(function, std::string("the leading dimension of ") + name + " is " +
                              std::to_string(side.leading) + ", below its " +
                              std::to_string(side.rows) + " rows");
    return false;
  }
  if (!to_dtype(side.type, elements.dtype)) return false;
  const std::int64_t last =
      (batch - 1) * side.batch_stride + (side.columns - 1) * side.leading + side.rows;
  const auto bytes = static_cast<std::size_t>(last * bits_of(elements.dtype) / 8);
  elements.data = host_view(side.data, bytes);
  if (elements.data == nullptr)
    refuse_blas(function, std::string(name) + " is not device memory of that extent");
  return elements.data != nullptr;
}

}  // namespace

cublasStatus_t multiply(const char* function, Product p) {
  if (p.m < 0 || p.n < 0 || p.k < 0 || p.batch < 1)
    return refuse_blas(function, "a dimension is negative");
  if (!supported(p))
    return refuse_blas(function, "the types are not supported together",
                       CUBLAS_STATUS_NOT_SUPPORTED);
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

}  // namespace memfathom::doubles

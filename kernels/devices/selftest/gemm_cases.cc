#include <fmt/format.h>

#include "kernels/devices/selftest/harness.h"

namespace memfathom::selftest {
namespace {

struct Product {
  std::int64_t batch, m, n, k;
};

// A [rows, columns] operand, stored row-major or transposed.
Operand matrix(Tensors& t, DType type, std::int64_t batch, std::int64_t rows, std::int64_t columns,
               bool flip) {
  const auto shape = [&](std::int64_t r, std::int64_t c) {
    return batch == 0 ? Shape{r, c} : Shape{batch, r, c};
  };
  return flip ? transposed(t.uniform(type, shape(columns, rows)))
              : t.uniform(type, shape(rows, columns));
}

void transposes(Harness& harness, DType type, const Product& p) {
  for (int flips = 0; flips < 8; ++flips) {
    Tensors t;
    GemmCall call;
    call.a = matrix(t, type, p.batch, p.m, p.k, flips & 1);
    call.b = matrix(t, type, p.batch, p.k, p.n, flips & 2);
    call.out = matrix(t, type, p.batch, p.m, p.n, flips & 4);
    call.alpha = 0.75;
    call.beta = flips % 3 == 0 ? 0 : 0.5;
    harness.compare(fmt::format("gemm {} batch {} {}x{}x{} flips {} beta {}", to_string(type),
                                p.batch, p.m, p.n, p.k, flips, call.beta),
                    call, {&GemmCall::out});
  }
}

// The transpositions determine whether cuBLAS or our own kernel conjugates.
void conjugates(Harness& harness, const Product& p) {
  for (int flips = 0; flips < 32; ++flips) {
    Tensors t;
    GemmCall call;
    call.a = matrix(t, DType::kComplex64, p.batch, p.m, p.k, flips & 1);
    call.b = matrix(t, DType::kComplex64, p.batch, p.k, p.n, flips & 2);
    call.out = matrix(t, DType::kComplex64, p.batch, p.m, p.n, flips & 4);
    call.conjugate_a = (flips & 8) != 0;
    call.conjugate_b = (flips & 16) != 0;
    harness.compare(
        fmt::format("gemm of conjugates batch {} {}x{}x{} flips {}", p.batch, p.m, p.n, p.k, flips),
        call, {&GemmCall::out});
  }
}

void biases(Harness& harness, DType type) {
  for (const Product& p :
       {Product{0, 6, 5, 7}, Product{2, 4, 3, 5}, Product{0, 5, 5, 5}, Product{0, 1, 4, 3}}) {
    for (int flips = 0; flips < 8; ++flips) {
      Tensors t;
      GemmCall call;
      call.a = matrix(t, type, p.batch, p.m, p.k, flips & 1);
      call.b = matrix(t, type, p.batch, p.k, p.n, flips & 2);
      call.out = matrix(t, type, p.batch, p.m, p.n, flips & 4);
      call.bias = t.uniform(type, {p.n}, 2, 3);
      call.beta = flips == 5 || flips == 2 ? 0.5 : 0;
      harness.compare(fmt::format("gemm {} with bias batch {} {}x{}x{} flips {}", to_string(type),
                                  p.batch, p.m, p.n, p.k, flips),
                      call, {&GemmCall::out});
    }
  }
}

}  // namespace

void gemm_cases(Harness& harness) {
  for (const DType type :
       {DType::kFp32, DType::kFp64, DType::kFp16, DType::kBf16, DType::kComplex64}) {
    for (const Product& p : {Product{0, 5, 3, 7}, Product{0, 1, 6, 4}, Product{0, 6, 1, 1},
                             Product{3, 4, 5, 2}, Product{1, 2, 3, 4}}) {
      transposes(harness, type, p);
    }
  }
  for (const Product& p : {Product{0, 5, 3, 7}, Product{3, 4, 5, 2}}) conjugates(harness, p);
  for (const DType type : {DType::kFp32, DType::kBf16, DType::kFp64}) biases(harness, type);

  Tensors t;
  harness.compare(
      "gemm of a row slice",
      GemmCall{t.filled(DType::kFp32, {3, 4}, 0),
               Operand{t.uniform(DType::kFp32, {3, 9}).data, DType::kFp32, {3, 5}, {9, 1}},
               t.uniform(DType::kFp32, {5, 4}),
               {},
               1,
               0},
      {&GemmCall::out});
  Operand shared = t.uniform(DType::kFp32, {1, 5, 4});
  shared.shape[0] = 3;
  shared.strides[0] = 0;
  harness.compare("gemm of a batch with one matrix",
                  GemmCall{t.filled(DType::kFp32, {3, 2, 4}, 0),
                           t.uniform(DType::kFp32, {3, 2, 5}),
                           shared,
                           {},
                           1,
                           0},
                  {&GemmCall::out});
  harness.compare("gemm bf16 into fp32",
                  GemmCall{t.filled(DType::kFp32, {3, 4}, 0),
                           t.uniform(DType::kBf16, {3, 5}),
                           t.uniform(DType::kBf16, {5, 4}),
                           {},
                           1,
                           0},
                  {&GemmCall::out});
  for (const DType type : {DType::kFp32, DType::kFp64, DType::kBf16, DType::kComplex64}) {
    GemmCall call{t.uniform(type, {3, 4, 5}),
                  t.uniform(type, {3, 4, 2}),
                  t.strided(type, {3, 2, 5}),
                  {},
                  0.5,
                  0};
    harness.compare(fmt::format("gemm {} of matrices across the batch", to_string(type)), call,
                    {&GemmCall::out});
    call.beta = 2;
    call.bias = t.uniform(type, {5});
    harness.compare(fmt::format("gemm {} of matrices across the batch with bias", to_string(type)),
                    call, {&GemmCall::out});
  }
}

}  // namespace memfathom::selftest

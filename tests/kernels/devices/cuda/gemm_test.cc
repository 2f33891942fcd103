#include "kernels/devices/cuda/cuda_device.h"
#include "kernels/devices/cuda/gemm_layout.h"
#include "tests/kernels/devices/cuda/doubled.h"

namespace memfathom::cuda {
namespace {

using testing::HasSubstr;

class CudaGemmTest : public DoubledTest {};

Operand matrix(const Shape& shape, const Shape& strides) {
  return {reinterpret_cast<void*>(0x1000), DType::kFp32, shape, strides};
}

TEST_F(CudaGemmTest, ARowMajorProductBecomesTheColumnMajorProductOfTheExchangedOperands) {
  const GemmLayout layout = layout_of({.out = matrix({3, 4}, {4, 1}),
                                       .a = matrix({3, 5}, {5, 1}),
                                       .b = matrix({5, 4}, {4, 1}),
                                       .bias = {}});
  EXPECT_EQ(layout.m, 4);
  EXPECT_EQ(layout.n, 3);
  EXPECT_EQ(layout.k, 5);
  EXPECT_EQ(layout.a.leading, 4);
  EXPECT_EQ(layout.b.leading, 5);
  EXPECT_EQ(layout.c.leading, 4);
  EXPECT_EQ(layout.a.operation, CUBLAS_OP_N);
  EXPECT_EQ(layout.b.operation, CUBLAS_OP_N);
  EXPECT_TRUE(layout.bias_along_rows);
}

TEST_F(CudaGemmTest, CublasTransposesAnOperandWithoutACopy) {
  const GemmLayout layout = layout_of({.out = matrix({3, 4}, {4, 1}),
                                       .a = matrix({3, 5}, {1, 3}),
                                       .b = matrix({5, 4}, {1, 5}),
                                       .bias = {}});
  EXPECT_EQ(layout.a.operation, CUBLAS_OP_T);
  EXPECT_EQ(layout.a.leading, 5);
  EXPECT_EQ(layout.b.operation, CUBLAS_OP_T);
  EXPECT_EQ(layout.b.leading, 3);
}

TEST_F(CudaGemmTest, ATransposedOutputExchangesTheOperands) {
  const GemmLayout layout = layout_of({.out = matrix({3, 4}, {1, 3}),
                                       .a = matrix({3, 5}, {5, 1}),
                                       .b = matrix({5, 4}, {4, 1}),
                                       .bias = {}});
  EXPECT_EQ(layout.m, 3);
  EXPECT_EQ(layout.n, 4);
  EXPECT_EQ(layout.a.operation, CUBLAS_OP_T);
  EXPECT_EQ(layout.b.operation, CUBLAS_OP_T);
  EXPECT_FALSE(layout.bias_along_rows);
}

TEST_F(CudaGemmTest, RefusesOperandsThatCublasCannotRead) {
  const Operand good = matrix({4, 4}, {4, 1});
  EXPECT_THAT(
      error_of([&] {
        layout_of({.out = good, .a = matrix({4, 4}, {8, 2}), .b = good, .bias = {}});
      }),
      HasSubstr("internal: gemm: a [4, 4] with strides [8, 2] is neither plain nor transposed"));
  EXPECT_THAT(error_of([&] {
                layout_of({.out = good, .a = matrix({4, 4}, {0, 1}), .b = good, .bias = {}});
              }),
              HasSubstr("neither plain"));
  EXPECT_THAT(
      error_of([&] { layout_of({.out = good, .a = matrix({4}, {1}), .b = good, .bias = {}}); }),
      HasSubstr("must be a matrix"));
  EXPECT_THAT(error_of([&] {
                layout_of({.out = good, .a = matrix({4, 3}, {3, 1}), .b = good, .bias = {}});
              }),
              HasSubstr("shape of a.b"));
  EXPECT_THAT(error_of([&] {
                layout_of({.out = matrix({2, 4, 4}, {16, 4, 1}),
                           .a = matrix({3, 4, 4}, {16, 4, 1}),
                           .b = matrix({2, 4, 4}, {16, 4, 1}),
                           .bias = {}});
              }),
              HasSubstr("another batch"));
  const std::int64_t huge = std::int64_t{1} << 31;
  EXPECT_THAT(error_of([&] {
                layout_of({.out = matrix({1, huge}, {huge, 1}),
                           .a = matrix({1, 1}, {1, 1}),
                           .b = matrix({1, huge}, {huge, 1}),
                           .bias = {}});
              }),
              HasSubstr("32-bit"));
}

TEST_F(CudaGemmTest, RefusesUnsupportedDtypesBeforeCallingCublas) {
  CudaDevice device(0);
  DeviceTensors tensors(device);
  GemmCall call;
  call.a = tensors.make(DType::kFp16, {2, 2});
  call.b = tensors.make(DType::kBf16, {2, 2});
  call.out = tensors.make(DType::kFp16, {2, 2});
  EXPECT_THAT(error_of([&] { device.run(call); }),
              HasSubstr("no product of fp16 and bf16 into fp16"));
  call.a = call.b = call.out = tensors.make(DType::kInt64, {2, 2});
  EXPECT_THAT(error_of([&] { device.run(call); }), HasSubstr("no product of int64"));
  device.synchronize();  // still usable
}

TEST_F(CudaGemmTest, DoesNotLaunchAnEmptyProduct) {
  CudaDevice device(0);
  device.run(GemmCall{.out = {reinterpret_cast<void*>(0x1000), DType::kFp32, {0, 4}, {4, 1}},
                      .a = {},
                      .b = {},
                      .bias = {}});
  EXPECT_EQ(doubles::calls_of("cublasGemmEx"), 0);
}

TEST_F(CudaGemmTest, UsesCublasLtForABiasWherePyTorchDoes) {
  CudaDevice device(0);
  DeviceTensors tensors(device);
  GemmCall call;
  call.a = tensors.fp32({2, 2}, {1, 2, 3, 4});
  call.b = tensors.fp32({2, 2}, {1, 0, 0, 1});
  call.out = tensors.fp32({2, 2}, {0, 0, 0, 0});
  call.bias = tensors.fp32({2}, {10, 20});
  device.run(call);
  EXPECT_EQ(doubles::calls_of("cublasLtMatmul"), 1);
  EXPECT_EQ(doubles::calls_of("cudaLaunchKernel"), 0);
  std::swap(call.out.strides[0], call.out.strides[1]);
  device.run(call);
  EXPECT_EQ(doubles::calls_of("cublasLtMatmul"), 1);
  EXPECT_EQ(doubles::calls_of("cudaLaunchKernel"), 1);
  EXPECT_EQ(doubles::calls_of("cublasGemmEx"), 1);
  EXPECT_THAT(tensors.read(call.out), testing::ElementsAre(11, 13, 22, 24));
}

TEST_F(CudaGemmTest, AddsABiasWithAKernelIfCublasLtHasNoAlgorithm) {
  for (const auto& [function, status] :
       {std::pair{"cublasLtMatmulAlgoGetHeuristic", static_cast<int>(CUBLAS_STATUS_NOT_SUPPORTED)},
        std::pair{"cublasLtMatmulAlgoGetHeuristic(found)", 1}}) {
    doubles::reset();
    CudaDevice device(0);
    DeviceTensors tensors(device);
    GemmCall call;
    call.a = tensors.fp32({2, 2}, {1, 2, 3, 4});
    call.b = tensors.fp32({2, 2}, {1, 0, 0, 1});
    call.out = tensors.fp32({2, 2}, {0, 0, 0, 0});
    call.bias = tensors.fp32({2}, {10, 20});
    doubles::fail(function, 1, status);
    device.run(call);
    EXPECT_THAT(tensors.read(call.out), testing::ElementsAre(11, 22, 13, 24)) << function;
    EXPECT_EQ(doubles::calls_of("cublasLtMatmul"), 0);
  }
}

// The double refuses a product whose operands are not aligned as its heuristic was told.
TEST_F(CudaGemmTest, MultipliesAViewInsideABlockWithCublasLt) {
  CudaDevice device(0);
  DeviceTensors tensors(device);
  GemmCall call;
  call.a = tensors.fp32({3, 2}, {9, 9, 1, 2, 3, 4});
  call.a.data = static_cast<float*>(call.a.data) + 2;
  call.a.shape = {2, 2};
  call.b = tensors.fp32({2, 2}, {1, 0, 0, 1});
  call.out = tensors.fp32({2, 2}, {0, 0, 0, 0});
  call.bias = tensors.fp32({2}, {10, 20});
  device.run(call);
  EXPECT_EQ(doubles::calls_of("cublasLtMatmul"), 1);
  EXPECT_THAT(tensors.read(call.out), testing::ElementsAre(11, 22, 13, 24));
  EXPECT_THAT(doubles::refusals(), testing::IsEmpty());
}

TEST_F(CudaGemmTest, AddsABiasInsideABlockWithCublasLt) {
  CudaDevice device(0);
  DeviceTensors tensors(device);
  GemmCall call;
  call.a = tensors.fp32({2, 2}, {1, 2, 3, 4});
  call.b = tensors.fp32({2, 2}, {1, 0, 0, 1});
  call.out = tensors.fp32({2, 2}, {0, 0, 0, 0});
  call.bias = tensors.fp32({3}, {9, 10, 20});
  call.bias.data = static_cast<float*>(call.bias.data) + 1;
  call.bias.shape = {2};
  device.run(call);
  EXPECT_EQ(doubles::calls_of("cublasLtMatmul"), 1);
  EXPECT_THAT(tensors.read(call.out), testing::ElementsAre(11, 22, 13, 24));
  EXPECT_THAT(doubles::refusals(), testing::IsEmpty());
}

TEST_F(CudaGemmTest, OffersCublasLtItsWorkspace) {
  CudaDevice device(0);
  DeviceTensors tensors(device);
  device.set_gemm_workspace(tensors.bytes(1 << 20));
  GemmCall call;
  call.a = call.b = tensors.fp32({2, 2}, {1, 2, 3, 4});
  call.out = tensors.fp32({2, 2}, {0, 0, 0, 0});
  call.bias = tensors.fp32({2}, {10, 20});
  device.run(call);
  EXPECT_EQ(doubles::calls_of("workspace used by cublasLtMatmul"), 1);
  EXPECT_THAT(doubles::refusals(), testing::IsEmpty());
}

}  // namespace
}  // namespace memfathom::cuda

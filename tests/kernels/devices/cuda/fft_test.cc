#include "kernels/devices/cuda/fft.h"

#include "kernels/devices/cuda/cuda_device.h"
#include "kernels/devices/cuda/plan_cache.h"
#include "tests/kernels/devices/cuda/doubled.h"

namespace memfathom::cuda {
namespace {

using testing::HasSubstr;

class CudaFftTest : public DoubledTest {};

FftCall call_of(DeviceTensors& tensors) {
  FftCall call;
  call.in = tensors.fp32({2, 16}, std::vector<float>(32, 1));
  call.out = tensors.make(DType::kComplex64, {2, 9});
  return call;
}

TEST_F(CudaFftTest, RefusesAMissingOrSmallWorkAreaBeforeTheLaunch) {
  CudaDevice device(0);
  DeviceTensors tensors(device);
  FftCall call = call_of(tensors);
  EXPECT_EQ(device.workspaces().fft(query_of(call)).bytes, Bytes{256});
  EXPECT_THAT(error_of([&] { device.run(call); }),
              HasSubstr("the work area has 0 B; cuFFT needs 256 B"));
  call.workspace = tensors.bytes(255);
  EXPECT_THAT(error_of([&] { device.run(call); }), HasSubstr("the work area has 255 B"));
  call.workspace = tensors.bytes(256);
  device.run(call);
  EXPECT_THAT(doubles::refusals(), testing::IsEmpty());
}

TEST_F(CudaFftTest, RefusesOperandsThatCufftCannotRead) {
  CudaDevice device(0);
  DeviceTensors tensors(device);
  FftCall call = call_of(tensors);
  call.in.strides = {1, 2};
  EXPECT_THAT(error_of([&] { device.run(call); }), HasSubstr("must be dense"));
  call = call_of(tensors);
  call.in.dtype = DType::kFp16;
  EXPECT_THAT(error_of([&] { device.run(call); }), HasSubstr("fp32 only"));
  call = call_of(tensors);
  call.rank = 3;
  EXPECT_THAT(error_of([&] { device.run(call); }), HasSubstr("one to three dimensions"));
  call = call_of(tensors);
  call.out.shape = {2, 8};
  call.out.strides = {8, 1};
  EXPECT_THAT(error_of([&] { device.run(call); }), HasSubstr("the extents do not fit"));
  device.synchronize();
}

TEST_F(CudaFftTest, DoesNotLaunchAnEmptyTransform) {
  CudaDevice device(0);
  FftCall call;
  call.out = {nullptr, DType::kComplex64, {0, 9}, {9, 1}};
  device.run(call);
  EXPECT_EQ(doubles::calls_of("cufftExecR2C"), 0);
}

TEST_F(CudaFftTest, DestroysOldPlansWhenTheCacheIsFull) {
  const Stream stream = make_stream();
  {
    Fft fft(stream.get(), 2);
    for (const std::int64_t n : {16, 32, 64})
      fft.workspace({FftKind::kRealToComplex, {n}, 1, DType::kFp32});
    EXPECT_EQ(doubles::calls_of("cufftCreate"), 3);
    EXPECT_EQ(doubles::calls_of("cufftDestroy"), 1);
    fft.workspace({FftKind::kRealToComplex, {32}, 1, DType::kFp32});
    EXPECT_EQ(doubles::calls_of("cufftCreate"), 3);
    fft.workspace(
        {FftKind::kRealToComplex, {16}, 1, DType::kFp32});  // it was 64 that had waited longest
    EXPECT_EQ(doubles::calls_of("cufftCreate"), 4);
    fft.workspace({FftKind::kRealToComplex, {32}, 1, DType::kFp32});
    EXPECT_EQ(doubles::calls_of("cufftCreate"), 4);
  }
  EXPECT_EQ(doubles::calls_of("cufftDestroy"), 4);
}

TEST_F(CudaFftTest, CachesNothingWhenCreatingAPlanThrows) {
  PlanCache<int> cache(2);
  EXPECT_THROW(cache.get("a", []() -> int { throw Error(ErrorKind::kEnvironment, "no"); }), Error);
  EXPECT_EQ(cache.size(), 0U);
  EXPECT_EQ(cache.get("a", [] { return 7; }), 7);
}

}  // namespace
}  // namespace memfathom::cuda

#include <cuda.h>
#include <cuda_runtime_api.h>

#include "kernels/devices/cuda/cuda_device.h"
#include "kernels/devices/cuda/segments.h"
#include "kernels/memory/allocator/caching_allocator.h"
#include "tests/kernels/devices/cuda/doubled.h"

namespace memfathom::cuda {
namespace {

using namespace literals;
using testing::HasSubstr;
using testing::IsEmpty;

class CudaMemoryTest : public DoubledTest {};

TEST_F(CudaMemoryTest, AllocatesAndFreesSegmentsWithCudaMalloc) {
  CudaDevice device(0);
  const std::size_t before = doubles::bytes_in_use();
  const auto address = device.memory().allocate(20_MiB, 0);
  ASSERT_TRUE(address.has_value());
  EXPECT_EQ(doubles::bytes_in_use() - before, 20U << 20);
  device.memory().release(*address, 20_MiB);
  EXPECT_EQ(doubles::bytes_in_use(), before);
  EXPECT_EQ(device.memory().capacity(), 8_GiB);
}

TEST_F(CudaMemoryTest, OutOfMemoryLeavesNoStaleError) {
  CudaDevice device(0);
  EXPECT_EQ(device.memory().allocate(9_GiB, 0), std::nullopt);
  EXPECT_EQ(cudaPeekAtLastError(), cudaSuccess);
  device.synchronize();
}

TEST_F(CudaMemoryTest, OtherCudaMallocFailuresAreEnvironmentErrors) {
  CudaDevice device(0);
  doubles::fail("cudaMalloc", 1, cudaErrorInvalidValue);
  EXPECT_THAT(error_of([&] { device.memory().allocate(2_MiB, 0); }),
              HasSubstr("environment: cudaMalloc of 2.00 MiB"));
  EXPECT_TRUE(device.memory().allocate(2_MiB, 0).has_value());
}

TEST_F(CudaMemoryTest, FailedCudaFreeLeavesNoStaleError) {
  CudaDevice device(0);
  const auto address = device.memory().allocate(2_MiB, 0);
  doubles::fail("cudaFree", 1, cudaErrorInvalidValue);
  device.memory().release(*address, 2_MiB);
  EXPECT_EQ(cudaPeekAtLastError(), cudaSuccess);
  cudaFree(reinterpret_cast<void*>(*address));
}

// The allocator's destructor releases everything; an exception there would terminate the process
// and hide the first error.
TEST_F(CudaMemoryTest, AnAllocatorOutlivesAPoisonedContext) {
  for (const bool expandable : {false, true}) {
    doubles::reset();
    AllocatorOptions options;
    options.expandable_segments = expandable;
    CudaDevice device(0);
    CachingAllocator allocator(device.memory(), options);
    const Allocation live = allocator.allocate(30_MiB);
    allocator.free(allocator.allocate(40_MiB));
    const Operand operand{live.data(), DType::kFp32, {4}, {1}};
    doubles::fail("cudaLaunchKernel", 1, cudaErrorIllegalAddress, true);
    const ElementwiseCall fill{.op = Elementwise::kFill, .out = operand, .a = {}, .b = {}, .c = {}};
    EXPECT_THAT(error_of([&] { device.run(fill); }), HasSubstr("cudaErrorIllegalAddress"));
    allocator.empty_cache();
    EXPECT_THAT(error_of([&] { device.run(fill); }), HasSubstr("unusable"));
  }
}

TEST_F(CudaMemoryTest, ReleasingASegmentTwiceIsAnInternalError) {
  CudaDevice device(0);
  const auto address = device.memory().allocate(2_MiB, 0);
  device.memory().release(*address, 2_MiB);
  EXPECT_THAT(error_of([&] { device.memory().release(*address, 2_MiB); }),
              HasSubstr("internal: a segment of 2.00 MiB"));
}

TEST_F(CudaMemoryTest, ReleasesLeftoverSegmentsWithTheDevice) {
  CudaDevice device(0);
  EXPECT_TRUE(device.memory().allocate(2_MiB, 0).has_value());
}

// The n-th request of a run of allocations fails once: if it can release cached memory the
// allocator recovers, as PyTorch's does; with nothing cached it is out of memory.
TEST_F(CudaMemoryTest, ReleasesTheCacheAfterOneFailedSegmentRequest) {
  for (int nth = 2; nth <= 5; ++nth) {
    CudaDevice device(0);
    CachingAllocator allocator(device.memory());
    allocator.free(allocator.allocate(30_MiB));  // cached: what a retry can release
    doubles::fail("cudaMalloc", nth - 1, cudaErrorMemoryAllocation);
    std::vector<Allocation> live;
    for (int i = 0; i < 5; ++i)
      live.push_back(allocator.allocate(Bytes{(40 + i) * (std::int64_t{1} << 20)}));
    EXPECT_EQ(allocator.statistics().num_alloc_retries, 1) << nth;
    for (const Allocation& allocation : live) allocator.free(allocation);
  }
}

TEST_F(CudaMemoryTest, PersistentlyFailedSegmentRequestIsOutOfMemoryAndLeavesTheDeviceUsable) {
  CudaDevice device(0);
  CachingAllocator allocator(device.memory());
  allocator.free(allocator.allocate(30_MiB));
  doubles::fail_always("cudaMalloc", cudaErrorMemoryAllocation);
  EXPECT_THROW(allocator.allocate(40_MiB), OutOfMemory);
  doubles::stop_failing();
  allocator.free(allocator.allocate(40_MiB));
  device.synchronize();
}

TEST_F(CudaMemoryTest, MapsAndUnmapsExpandableSegmentsByPage) {
  CudaDevice device(0);
  ASSERT_TRUE(device.memory().expandable());
  AllocatorOptions options;
  options.expandable_segments = true;
  {
    CachingAllocator allocator(device.memory(), options);
    const Allocation first = allocator.allocate(30_MiB);
    const Allocation second = allocator.allocate(5_MiB);
    EXPECT_EQ(doubles::calls_of("cuMemMap"), 2);
    EXPECT_EQ(doubles::calls_of("cuMemRelease"), 2);
    // A tensor that spans two pages is one piece of memory.
    const std::vector<char> content(std::size_t{30} << 20, 7);
    device.copy_from_host(first.data(), content.data(), 30_MiB);
    allocator.free(first);
    allocator.free(second);
    allocator.empty_cache();
    EXPECT_EQ(doubles::bytes_in_use(), 0U);
  }
  EXPECT_THAT(doubles::refusals(), IsEmpty());
}

TEST_F(CudaMemoryTest, MappingThatRunsOutOfMemoryMapsNothing) {
  CudaDevice device(0);
  SegmentSource& memory = device.memory();
  const std::uint64_t address = memory.reserve(80_MiB);
  doubles::fail("cuMemCreate", 3, CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_FALSE(memory.map(address, 60_MiB, 20_MiB));
  EXPECT_EQ(doubles::bytes_in_use(), 0U);
  EXPECT_TRUE(memory.map(address, 60_MiB, 20_MiB));
  memory.unmap(address, 60_MiB, 20_MiB);
  memory.unreserve(address, 80_MiB);
}

TEST_F(CudaMemoryTest, MappingThatFailsInAnyStepLeavesNothingMapped) {
  for (const char* step : {"cuMemCreate", "cuMemMap", "cuMemSetAccess"}) {
    CudaDevice device(0);
    SegmentSource& memory = device.memory();
    const std::uint64_t address = memory.reserve(8_MiB);
    doubles::fail(step, 2, CUDA_ERROR_INVALID_VALUE);
    EXPECT_THAT(error_of([&] { memory.map(address, 4_MiB, 2_MiB); }), HasSubstr("driver error"))
        << step;
    EXPECT_EQ(doubles::bytes_in_use(), 0U) << step;
    memory.unreserve(address, 8_MiB);
  }
}

TEST_F(CudaMemoryTest, UnmappingWaitsForTheDevice) {
  CudaDevice device(0);
  SegmentSource& memory = device.memory();
  const std::uint64_t address = memory.reserve(2_MiB);
  ASSERT_TRUE(memory.map(address, 2_MiB, 2_MiB));
  const int before = doubles::calls_of("cudaDeviceSynchronize");
  memory.unmap(address, 2_MiB, 2_MiB);
  EXPECT_EQ(doubles::calls_of("cudaDeviceSynchronize"), before + 1);
  memory.unreserve(address, 2_MiB);
}

TEST_F(CudaMemoryTest, FailingToReserveAddressesIsReportedAndFailingToFreeThemIsNot) {
  CudaDevice device(0);
  doubles::fail("cuMemAddressReserve", 1, CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_THAT(error_of([&] { device.memory().reserve(2_MiB); }),
              HasSubstr("cuMemAddressReserve: driver error 2"));
  const std::uint64_t address = device.memory().reserve(2_MiB);
  doubles::fail("cuMemAddressFree", 1, CUDA_ERROR_INVALID_VALUE);
  device.memory().unreserve(address, 2_MiB);
  device.memory().unreserve(address, 2_MiB);
}

TEST_F(CudaMemoryTest, ADriverWithoutVirtualMemoryHasNoExpandableSegments) {
  doubles::fail("cudaGetDriverEntryPointByVersion", 3, cudaErrorInvalidValue);
  CudaDevice device(0);
  EXPECT_FALSE(device.memory().expandable());
  EXPECT_THAT(error_of([&] { device.memory().reserve(2_MiB); }), HasSubstr("leave the option out"));
  device.synchronize();
}

TEST_F(CudaMemoryTest, CopiesArriveInBothDirections) {
  CudaDevice device(0);
  DeviceTensors tensors(device);
  const std::vector<float> values{1, -2, 3.5F, 4};
  EXPECT_EQ(tensors.read(tensors.fp32({2, 2}, values)), values);
}

TEST_F(CudaMemoryTest, RefusesHostMemoryInPlaceOfDeviceMemory) {
  CudaDevice device(0);
  std::vector<float> host(4);
  const std::vector<float> values(4);
  EXPECT_THAT(error_of([&] { device.copy_from_host(host.data(), values.data(), 16_B); }),
              HasSubstr("a copy to the device"));
}

}  // namespace
}  // namespace memfathom::cuda

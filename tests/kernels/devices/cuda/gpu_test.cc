// The real device: label gpu when -DMEMFATHOM_GPU_TESTS=ON says that there is one, else the doubled
// device and label rehearsal.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "kernels/devices/cuda_loader.h"
#include "kernels/devices/selftest/selftest.h"
#include "kernels/memory/allocator/caching_allocator.h"

namespace memfathom {
namespace {

using namespace literals;

// $MEMFATHOM_TEST_DEVICE ("cuda:1"), as scripts/gpu-day sets it; else the first.
int tested_gpu() {
  const char* given = std::getenv("MEMFATHOM_TEST_DEVICE");
  const std::string name = given != nullptr ? given : "cuda:0";
  return std::stoi(name.substr(name.find(':') + 1));
}

TEST(GpuTest, EveryCallAgreesWithTheReferenceLoops) {
  const std::unique_ptr<Device> device = open_cuda_device(tested_gpu());
  const SelftestReport report = compare_with_reference(*device);
  for (const SelftestCase& result : report.cases) {
    EXPECT_TRUE(result.passed()) << result.name << ": " << result.difference << " over "
                                 << result.tolerance << " " << result.failure;
  }
}

TEST(GpuTest, TheEnvironmentNamesTheGpu) {
  const Environment environment = open_cuda_device(tested_gpu())->environment();
  EXPECT_FALSE(environment.gpu.empty());
  EXPECT_THAT(environment.architecture, testing::StartsWith("sm_"));
  EXPECT_GT(environment.memory_total, 1_GiB);
}

TEST(GpuTest, AllocatingMoreThanTheGpuHasIsOutOfMemoryAndLeavesTheDeviceUsable) {
  const std::unique_ptr<Device> device = open_cuda_device(tested_gpu());
  CachingAllocator allocator(device->memory());
  allocator.free(allocator.allocate(30_MiB));
  EXPECT_THROW(allocator.allocate(*device->memory().capacity() + 1_GiB), OutOfMemory);
  const Allocation small = allocator.allocate(1_KiB);
  const std::vector<char> written(1024, 5);
  std::vector<char> read(1024);
  device->copy_from_host(small.data(), written.data(), 1_KiB);
  device->copy_to_host(read.data(), small.data(), 1_KiB);
  EXPECT_EQ(read, written);
  allocator.free(small);
}

TEST(GpuTest, ATensorSpansThePagesOfAnExpandableSegment) {
  const std::unique_ptr<Device> device = open_cuda_device(tested_gpu());
  AllocatorOptions options;
  options.expandable_segments = true;
  CachingAllocator allocator(device->memory(), options);
  const Allocation wide = allocator.allocate(50_MiB);
  const std::vector<char> written(std::size_t{50} << 20, 9);
  std::vector<char> read(written.size());
  device->copy_from_host(wide.data(), written.data(), 50_MiB);
  device->copy_to_host(read.data(), wide.data(), 50_MiB);
  EXPECT_EQ(read, written);
  allocator.free(wide);
}

}  // namespace
}  // namespace memfathom

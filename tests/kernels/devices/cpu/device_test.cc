// The cpu device as a device: identity, memory, the module it is loaded from.
#include <gtest/gtest.h>

#include <cstdlib>
#include <vector>

#include "core/error.h"
#include "kernels/devices/cpu/cpu_device.h"
#include "kernels/devices/cpu/open.h"
#include "tests/kernels/devices/reference/host_tensor.h"

namespace memfathom {
namespace {

using testing::HostTensor;

TEST(CpuDeviceTest, DescribesTheMachineItRunsOn) {
  const CpuDevice device{Bytes{1 << 20}};
  const Environment environment = device.environment();
  EXPECT_NE(environment.gpu.find("(cpu)"), std::string::npos);
  EXPECT_GT(environment.memory_total.count(), 1 << 26);
  EXPECT_EQ(environment.cudnn.rfind("oneDNN ", 0), 0u);
  EXPECT_EQ(environment.cufft.rfind("FFTW 3", 0), 0u);
  EXPECT_EQ(environment.framework, "memfathom");
  EXPECT_FALSE(environment.os.empty());
  EXPECT_FALSE(environment.is_virtual());
}

TEST(CpuDeviceTest, AllocatesSegmentsUpToItsCapacityAndReleasesThem) {
  CpuDevice device{Bytes{4 << 20}};
  const auto first = device.memory().allocate(Bytes{3 << 20}, 0);
  ASSERT_TRUE(first.has_value());
  EXPECT_FALSE(device.memory().allocate(Bytes{2 << 20}, 0).has_value());
  device.memory().release(*first, Bytes{3 << 20});
  const auto second = device.memory().allocate(Bytes{4 << 20}, 0);
  ASSERT_TRUE(second.has_value());
  device.memory().release(*second, Bytes{4 << 20});
}

TEST(CpuDeviceTest, CopiesBytesToAndFromItsMemory) {
  CpuDevice device{Bytes{4 << 20}};
  const std::uint64_t address = device.memory().allocate(Bytes{1 << 20}, 0).value();
  void* memory = reinterpret_cast<void*>(address);
  const std::vector<int> sent{1, 2, 3};
  std::vector<int> received(3);
  device.copy_from_host(memory, sent.data(), Bytes{12});
  device.copy_to_host(received.data(), memory, Bytes{12});
  EXPECT_EQ(received, sent);
  device.memory().release(address, Bytes{1 << 20});
}

TEST(CpuModuleTest, TheDeviceOpenedFromItsModuleComputesAndThrowsOurErrors) {
  const std::unique_ptr<Device> device = open_cpu_device();
  EXPECT_EQ(device->name(), "cpu");
  EXPECT_TRUE(device->computes());
  const HostTensor a = HostTensor::of({2, 2}, {1, 2, 3, 4}, DType::kFp32);
  HostTensor out({2, 2}, DType::kFp32);
  device->run(GemmCall{out, a, a, {}});
  device->synchronize();
  EXPECT_EQ(out.values(), (std::vector<double>{7, 10, 15, 22}));
  const HostTensor index = HostTensor::of({1}, {5}, DType::kInt64);
  EXPECT_THROW(device->run(EmbeddingCall{false, -1, a, index, HostTensor({1, 2}, DType::kFp32)}),
               Error);
}

TEST(CpuModuleTest, ReportsAMissingModuleWithARemedy) {
  setenv("MEMFATHOM_CPU_MODULE", "/nowhere/libmemfathom_cpu.so", 1);
  try {
    open_cpu_device();
    FAIL() << "a module was loaded from /nowhere";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kEnvironment);
    EXPECT_NE(std::string(error.what()).find("/nowhere/libmemfathom_cpu.so"), std::string::npos);
    EXPECT_NE(std::string(error.what()).find("MEMFATHOM_CPU_MODULE"), std::string::npos);
  }
  unsetenv("MEMFATHOM_CPU_MODULE");
}

TEST(CpuModuleTest, RefusesAModuleOfAnotherBuild) {
  setenv("MEMFATHOM_CPU_MODULE", MEMFATHOM_OTHER_MODULE, 1);
  try {
    open_cpu_device();
    FAIL() << "a module of another build was trusted";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kEnvironment);
    EXPECT_NE(std::string(error.what()).find("belongs to another build"), std::string::npos);
  }
  unsetenv("MEMFATHOM_CPU_MODULE");
}

}  // namespace
}  // namespace memfathom

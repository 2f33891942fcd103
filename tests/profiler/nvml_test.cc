#include "profiler/nvml.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>

#include "core/error.h"
#include "profiler/gpu_meter.h"

namespace memfathom {
namespace {

using namespace literals;
using ::testing::HasSubstr;

class NvmlLibraryTest : public testing::Test {
 protected:
  NvmlLibraryTest() { setenv("MEMFATHOM_NVML", MEMFATHOM_FAKE_NVML, 1); }
  ~NvmlLibraryTest() override { unsetenv("MEMFATHOM_NVML"); }
  std::string why_;
};

TEST_F(NvmlLibraryTest, TellsWhatACardIsAndWhoUsesIt) {
  const std::unique_ptr<Nvml> nvml = Nvml::open(&why_);
  ASSERT_NE(nvml, nullptr) << why_;
  EXPECT_EQ(nvml->device_count(), 1);
  const GpuStatus status = nvml->status(0);
  EXPECT_EQ(status.name, "Pretend H100");
  EXPECT_EQ(status.driver, "580.1");
  EXPECT_EQ(status.total, 80_GiB);
  EXPECT_EQ(status.reserved, 1_GiB);
  EXPECT_TRUE(status.ecc);
  EXPECT_FALSE(status.mig);
  const GpuProcess other{7, "python", std::nullopt};
  const GpuProcess self{getpid(), "", 2_GiB};
  EXPECT_THAT(status.processes, testing::ElementsAre(other, self));
}

TEST_F(NvmlLibraryTest, ACardThatIsNotThereIsAnErrorInNvmlsWords) {
  const std::unique_ptr<Nvml> nvml = Nvml::open(&why_);
  try {
    nvml->status(1);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kEnvironment);
    EXPECT_THAT(error.what(), HasSubstr("Not Found"));
  }
}

TEST_F(NvmlLibraryTest, TheMeterReadsThisProcessAlone) {
  const std::unique_ptr<MemoryMeter> meter = make_gpu_meter(0);
  EXPECT_EQ(meter->used(), 2_GiB);
  EXPECT_EQ(meter->metric(), "nvml-process");
  EXPECT_EQ(meter->disturbance(), "");
}

TEST_F(NvmlLibraryTest, AFileThatIsNoNvmlIsRefusedWithAReason) {
  setenv("MEMFATHOM_NVML", "/nonexistent.so", 1);
  EXPECT_EQ(Nvml::open(&why_), nullptr);
  EXPECT_THAT(why_, HasSubstr("not installed"));
  setenv("MEMFATHOM_NVML", "libc.so.6", 1);
  EXPECT_EQ(Nvml::open(&why_), nullptr);
  EXPECT_THAT(why_, HasSubstr("older than"));
}

}  // namespace
}  // namespace memfathom

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "kernels/memory/allocator/arithmetic_segments.h"
#include "profiler/gpu_meter.h"
#include "profiler/limited_segments.h"
#include "profiler/rss_meter.h"
#include "profiler/sampler.h"
#include "profiler/visible_devices.h"

namespace memfathom {
namespace {

using namespace literals;
using ::testing::HasSubstr;

TEST(RssMeterTest, ReadsALineOfAStatusFileInKibibytes) {
  EXPECT_EQ(status_bytes("Name:\tx\nVmRSS:\t   2200 kB\nVmSwap:\t 0 kB\n", "VmRSS"),
            Bytes{std::int64_t{2200} * 1024});
  EXPECT_EQ(status_bytes("MemTotal:       16 kB\nMemFree: 2 kB\n", "MemTotal"), Bytes{16} * 1024);
  EXPECT_EQ(status_bytes("Name:\tx\n", "VmRSS"), std::nullopt);
  EXPECT_EQ(status_bytes("Name:\tx\nVmRSS:\tmany\n", "VmRSS"), std::nullopt);
}

TEST(RssMeterTest, MeasuresTouchedPages) {
  const RssMeter meter;
  const Bytes before = meter.used();
  std::vector<char> memory(std::size_t{64} << 20);
  std::memset(memory.data(), 1, memory.size());
  EXPECT_GE(meter.used() - before, 60_MiB);
  EXPECT_GE(*meter.high_water(), meter.used() - 1_MiB);
}

// Readings set by the test.
class ScriptedMeter final : public MemoryMeter {
 public:
  Bytes used() const override { return next_ < 50 ? Bytes{++next_} : Bytes{next_--}; }
  std::string metric() const override { return "scripted"; }

 private:
  mutable std::int64_t next_ = 0;
};

TEST(SamplerTest, ReadsOnceMoreWhenItStopsAndKeepsTheHighest) {
  const ScriptedMeter meter;
  Sampler sampler(meter, std::chrono::hours{1});
  EXPECT_EQ(sampler.stop(), Bytes{1});
  EXPECT_EQ(sampler.readings(), 1);
  EXPECT_EQ(sampler.stop(), Bytes{1});
}

TEST(LimitedSegmentsTest, ThrowsBeyondItsCeilingAndRecordsThePeak) {
  ArithmeticSegments inner;
  LimitedSegments limited(inner, 10_MiB);
  const std::optional<std::uint64_t> first = limited.allocate(6_MiB, 0);
  ASSERT_TRUE(first);
  EXPECT_FALSE(limited.allocate(5_MiB, 0));
  limited.release(*first, 6_MiB);
  EXPECT_TRUE(limited.allocate(5_MiB, 0));
  EXPECT_EQ(limited.held(), 5_MiB);
  EXPECT_EQ(limited.peak(), 6_MiB);
  EXPECT_EQ(limited.capacity(), 10_MiB);
}

TEST(GpuMeterTest, NamesTheProcessThatDisturbedASample) {
  const GpuProcess other{7, "python", 100_MiB};
  const GpuProcess self{42, "memfathom", 1_GiB};
  EXPECT_EQ(describe_other_processes({other}, {other, self}, 42), "");
  EXPECT_THAT(describe_other_processes({}, {other, self}, 42), HasSubstr("process 7 started"));
  EXPECT_THAT(describe_other_processes({other}, {self}, 42), HasSubstr("process 7 stopped"));
  EXPECT_THAT(describe_other_processes({other}, {{7, "python", 200_MiB}}, 42),
              HasSubstr("process 7 changed"));
}

TEST(VisibleDevicesTest, AreParsedAsCudaDoes) {
  using Entries = std::vector<std::string>;
  EXPECT_EQ(visible_devices(nullptr), std::nullopt) << "all";
  EXPECT_EQ(visible_devices(""), Entries()) << "none";
  EXPECT_EQ(visible_devices("3,GPU-1f"), (Entries{"3", "GPU-1f"}));
  EXPECT_EQ(visible_devices("0, MIG-2a"), (Entries{"0", "MIG-2a"}));
  EXPECT_EQ(visible_devices("1,-1,0"), Entries{"1"}) << "what is no GPU ends the list";
  EXPECT_EQ(visible_devices("NoDevFiles"), Entries());
}

}  // namespace
}  // namespace memfathom

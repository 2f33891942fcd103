#include "profiler/checked_probe.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace memfathom {
namespace {

using namespace literals;
using ::testing::HasSubstr;

constexpr std::int64_t kA100Threads = std::int64_t{108} * 2048;  // 216 times 1024
constexpr std::int64_t kH100Threads = std::int64_t{132} * 2048;

Sample sample_of(Bytes allocated, Bytes reserved, Bytes device) {
  Sample sample;
  sample.device_metric = "nvml-process";
  sample.allocated_peak = allocated;
  sample.reserved_peak = reserved;
  sample.device_peak = device;
  sample.stages = {{"baseline", Bytes{}}, {"context", 440_MiB}, {"cublas", 520_MiB}};
  return sample;
}

Environment torch_on(const char* architecture, const char* loading) {
  Environment environment;
  environment.architecture = architecture;
  environment.framework = "pytorch";
  environment.module_loading = loading;
  return environment;
}

TEST(ContradictionTest, AllocatedIsAtMostReservedIsAtMostDevice) {
  EXPECT_EQ(contradiction_in(sample_of(1_GiB, 2_GiB, 3_GiB)), "");
  EXPECT_EQ(contradiction_in(sample_of(1_GiB, 1_GiB, 1_GiB)), "");
  EXPECT_THAT(contradiction_in(sample_of(3_GiB, 2_GiB, 4_GiB)), HasSubstr("are more than the"));
  EXPECT_THAT(contradiction_in(sample_of(1_GiB, 2_GiB, 1_GiB)), HasSubstr("is below the"));
}

TEST(ContradictionTest, ResidentPagesMayBeFewerThanReservedOnes) {
  Sample sample = sample_of(1_GiB, 2_GiB, 1_GiB);
  sample.device_metric = "rss";
  EXPECT_EQ(contradiction_in(sample), "");
}

TEST(UnusualOverheadTest, FollowsThePublishedFiguresOfTheGpu) {
  const Environment environment = torch_on("sm_80", "lazy");
  const auto judged = [&](Bytes device) {
    return unusual_overhead(sample_of(1_GiB, 1_GiB, device), environment, kA100Threads);
  };
  EXPECT_EQ(judged(1_GiB + 514_MiB), "");
  EXPECT_THAT(judged(1_GiB + 1400_MiB), HasSubstr("1400 MiB outside the allocator after "
                                                  "the steps; published figures for such a GPU "
                                                  "are 489 to 664 MiB"));
  EXPECT_THAT(judged(1_GiB + 100_MiB), HasSubstr("100 MiB"));
}

TEST(UnusualOverheadTest, NamesTheStageInWhichItAppeared) {
  Sample sample = sample_of(1_GiB, 1_GiB, 1_GiB + 514_MiB);
  sample.stages[1].device_used = 64_MiB;
  const std::string why = unusual_overhead(sample, torch_on("sm_80", "lazy"), kA100Threads);
  EXPECT_THAT(why, HasSubstr("64 MiB outside the allocator after context"));
  Environment own = torch_on("sm_80", "lazy");
  own.framework = "memfathom";
  EXPECT_NE(unusual_overhead(sample, own, kA100Threads), "") << "a context is a context";
  sample.stages[1].device_used = 440_MiB;
  sample.stages[2].device_used = 1400_MiB;
  EXPECT_EQ(unusual_overhead(sample, own, kA100Threads), "") << "our kernels are not PyTorch's";
  EXPECT_THAT(unusual_overhead(sample, torch_on("sm_80", "lazy"), kA100Threads),
              HasSubstr("after cublas"));
}

TEST(UnusualOverheadTest, EagerLoadingAndHopperHaveBandsOfTheirOwn) {
  Sample eager = sample_of(1_GiB, 1_GiB, 1_GiB + 1500_MiB);
  eager.stages = {{"baseline", Bytes{}}, {"context", 1100_MiB}};
  EXPECT_EQ(unusual_overhead(eager, torch_on("sm_80", "eager"), kA100Threads), "");
  EXPECT_NE(unusual_overhead(eager, torch_on("sm_80", "lazy"), kA100Threads), "");
  Sample hopper = sample_of(1_GiB, 1_GiB, 1_GiB + 820_MiB);
  hopper.stages = {{"baseline", Bytes{}}, {"context", 525_MiB}};
  EXPECT_EQ(unusual_overhead(hopper, torch_on("sm_90", "lazy"), kH100Threads), "");
  EXPECT_NE(unusual_overhead(hopper, torch_on("sm_100", "lazy"), kH100Threads), "");
}

TEST(UnusualOverheadTest, SaysNothingWhereThereIsNoBand) {
  const Sample odd = sample_of(1_GiB, 1_GiB, 9_GiB);
  EXPECT_EQ(unusual_overhead(odd, torch_on("sm_80", "lazy"), 0), "");
  EXPECT_EQ(unusual_overhead(odd, torch_on("sm_80", ""), kA100Threads), "");
  Sample cpu = odd;
  cpu.device_metric = "rss";
  EXPECT_EQ(unusual_overhead(cpu, torch_on("x86_64", "lazy"), kA100Threads), "");
}

// An unusual sample is a measurement all the same: it stays usable and carries its flag.
TEST(CheckedProbeTest, AnUnusualSampleStaysOkWithANote) {
  const ProbeProgram program{
      "/bin/sh",
      {"-c",
       "cat > /dev/null; echo '{\"environment\":{\"architecture\":\"sm_80\",\"framework\":"
       "\"pytorch\",\"module_loading\":\"lazy\"},\"memory_free_bytes\":1,"
       "\"resident_threads\":221184,\"sample\":{\"status\":\"ok\",\"device_metric\":"
       "\"nvml-process\",\"device_peak_bytes\":4000000000,\"reserved_peak_bytes\":1000000000,"
       "\"stages\":[{\"stage\":\"baseline\",\"device_used_bytes\":0}]}}'"}};
  ProbeRequest request;
  request.device = "cuda:0";
  const ProbeOutcome outcome = run_checked_probe(program, request, {});
  EXPECT_EQ(outcome.status, SampleStatus::kOk);
  EXPECT_THAT(outcome.note, HasSubstr("2861 MiB"));
}

}  // namespace
}  // namespace memfathom

// Estimates for the local GPU, which is a fake (tests/profiler/fake_nvml.cc).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/cli/profiling_fixture.h"
#include "tests/support/paths.h"

namespace memfathom {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

constexpr std::int64_t kGiB = 1 << 30;

class LiveGpuTest : public ProfilingFixture {
 protected:
  Outcome ask(std::vector<std::string> more, std::string command = "estimate") {
    std::vector<std::string> words{std::move(command), "--model", "gpt2", "--sequence-length", "64",
                                   "--format",         "json"};
    words.insert(words.end(), more.begin(), more.end());
    return run(words, {"MEMFATHOM_NVML=" MEMFATHOM_FAKE_NVML,
                       "MEMFATHOM_FAKE_NAME=NVIDIA H100 80GB HBM3", "XDG_CACHE_HOME=" + folder_});
  }
};

TEST_F(LiveGpuTest, IsTheTargetOfAJobWithoutATarget) {
  const Outcome outcome = ask({});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const json answer = json::parse(outcome.out);
  EXPECT_EQ(answer["verdict"]["capacity_bytes"], 80 * kGiB);
  EXPECT_EQ(answer["verdict"]["available_bytes"], 76 * kGiB) << "others and the driver hold 4 GiB";
  EXPECT_THAT(answer["assumptions"].dump(),
              HasSubstr("the target is cuda:0, NVIDIA H100 80GB HBM3: 4.00 GiB of 80.00 GiB are "
                        "in use (python 7"));
}

TEST_F(LiveGpuTest, IsNotQueriedIfTheJobHasATarget) {
  const json answer = json::parse(ask({"--gpu", "t4"}).out);
  EXPECT_EQ(answer["verdict"]["available_bytes"], 15 * kGiB - (320 << 20) - 15 * kGiB / 200)
      << "without what its driver keeps";
}

TEST_F(LiveGpuTest, IsSelectedByIndexAndOverriddenByJobKeys) {
  const json answer = json::parse(
      ask({"--device_id", "0", "--set", "target.used_by_others=30GiB", "--set", "target.margin=0"})
          .out);
  EXPECT_EQ(answer["verdict"]["available_bytes"], 50 * kGiB);
}

// New GPUs and MIG instances are not in the GPU table.
TEST_F(LiveGpuTest, UsesItsCalibrationEvenIfTheModelIsUnknown) {
  std::ifstream published(test_data().string() + "/../../db/published/a100-40gb-pytorch.json");
  json calibration = json::parse(published);
  calibration.erase("id");
  calibration["name"] = "Pretend X900/pytorch";
  calibration["environment"]["gpu"] = "Pretend X900";
  std::ofstream(folder_ + "/calibration.json") << calibration;
  ASSERT_EQ(run({"db", "import", folder_ + "/calibration.json"}).exit_code, 0);
  const Outcome outcome =
      run({"estimate", "--model", "gpt2", "--sequence-length", "64", "--format", "json"},
          {"MEMFATHOM_NVML=" MEMFATHOM_FAKE_NVML, "MEMFATHOM_FAKE_NAME=Pretend X900",
           "XDG_CACHE_HOME=" + folder_});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(json::parse(outcome.out)["calibration"]["status"], "calibrated");
}

TEST_F(LiveGpuTest, ReportsAMissingGpuInOneSentence) {
  const Outcome outcome = ask({"--device-id", "3"});
  EXPECT_EQ(outcome.exit_code, 4);
  EXPECT_THAT(outcome.err, HasSubstr("cuda:3 does not exist; there is cuda:0"));
  const Outcome none = run({"estimate", "--model", "gpt2", "--device-id", "0"},
                           {"MEMFATHOM_CUDA_MODULE=/nonexistent"});
  EXPECT_EQ(none.exit_code, 4);
  EXPECT_THAT(none.err, HasSubstr("name a GPU with --gpu instead"));
}

TEST_F(LiveGpuTest, LimitsTheRecommendation) {
  const Outcome outcome = ask({}, "recommend");
  ASSERT_LE(outcome.exit_code, 1) << outcome.err;
  EXPECT_EQ(json::parse(outcome.out)["available_bytes"].get<std::int64_t>(),
            76 * kGiB - 80 * kGiB / 10)
      << "a tenth of the GPU stays free";
}

}  // namespace
}  // namespace memfathom

// Which calibration an estimate used, and whether it still holds.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/cli/binary.h"
#include "tests/support/paths.h"
#include "tests/support/temporary_directory.h"

namespace memfathom {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

class CalibrationStatusTest : public ::testing::Test {
 protected:
  // A database with one calibration, made under CUDA 12.4 and PyTorch 2.6.0.
  void SetUp() override {
    std::ifstream published(test_data().string() + "/../../db/published/a100-40gb-pytorch.json");
    json calibration = json::parse(published);
    calibration.erase("id");
    calibration["environment"]["cuda"] = "12.4";
    calibration["environment"]["framework_version"] = "2.6.0";
    std::ofstream(directory_ / "calibration.json") << calibration;
    const Outcome outcome = run_binary(
        {"--db", database(), "db", "import", (directory_ / "calibration.json").string()});
    ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  }
  std::string database() const { return (directory_ / "store.db").string(); }
  json estimate(const std::vector<std::string>& more) const {
    std::vector<std::string> words{
        "--db",         database(), "--format", "json",      "estimate",          "--model", "gpt2",
        "--batch-size", "1",        "--gpu",    "a100-40gb", "--sequence-length", "64"};
    words.insert(words.end(), more.begin(), more.end());
    const Outcome outcome = run_binary(words);
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    return json::parse(outcome.out);
  }

  TemporaryDirectory directory_;
};

TEST_F(CalibrationStatusTest, UsesACalibrationOfTheSameStack) {
  for (const char* version : {"2.6.0", "2.6"}) {
    const json result = estimate({"--set", std::string("target.stack.version=\"") + version + '"'});
    EXPECT_EQ(result["calibration"]["status"], "calibrated") << version;
    EXPECT_TRUE(result["warnings"].empty()) << result["warnings"];
  }
  EXPECT_THAT(estimate({})["calibration"]["created"].get<std::string>(), HasSubstr("T"));
}

TEST_F(CalibrationStatusTest, MarksACalibrationStaleAndNamesTheChangedVersion) {
  const json framework = estimate({"--set", "target.stack.version=\"2.1\""});
  EXPECT_EQ(framework["calibration"]["status"], "stale");
  EXPECT_THAT(framework["warnings"][0].get<std::string>(), HasSubstr("2.6.0 and is 2.1"));
  const json cuda = estimate({"--set", "target.stack.cuda=\"11.8\""});
  EXPECT_EQ(cuda["calibration"]["status"], "stale");
  EXPECT_THAT(cuda["warnings"][0].get<std::string>(), HasSubstr("CUDA was 12.4 and is 11.8"));
}

TEST_F(CalibrationStatusTest, AcceptsTheIdDigitsShownByTheList) {
  const Outcome listed = run_binary({"--db", database(), "calibrations", "list"});
  std::istringstream lines(listed.out);
  int found = 0;
  for (std::string line; std::getline(lines, line);) {
    const std::string id = line.substr(0, 12);
    if (id.find_first_not_of("0123456789abcdef") != std::string::npos) continue;
    ++found;
    const json by_flag = estimate({"--calibration", id});
    EXPECT_THAT(by_flag["calibration"]["id"].get<std::string>(), StartsWith(id));
    EXPECT_EQ(estimate({"--calibration", by_flag["calibration"]["id"]}), by_flag);
    EXPECT_EQ(run_binary({"--db", database(), "calibrations", "show", id}).exit_code, 0);
  }
  EXPECT_GE(found, 2) << listed.out;
}

TEST_F(CalibrationStatusTest, ReportsAMissingCalibrationInOneSentence) {
  for (const char* wanted : {"123456", "12e4", "no/such"}) {
    const Outcome outcome = run_binary({"--db", database(), "estimate", "--model", "gpt2",
                                        "--sequence-length", "8", "--calibration", wanted});
    EXPECT_EQ(outcome.exit_code, 2);
    EXPECT_THAT(outcome.err, HasSubstr(std::string("target.calibration \"") + wanted + '"'));
    EXPECT_THAT(outcome.err, HasSubstr("memfathom calibrations list"));
  }
}

TEST_F(CalibrationStatusTest, KnowsOnlyTheCapacityOfAmdGpus) {
  const json result = estimate({"--set", "target.gpu=mi300x"});
  EXPECT_THAT(result["warnings"].dump(), HasSubstr("AMD GPUs"));
}

TEST_F(CalibrationStatusTest, APublishedCalibrationAppliesToItsOwnStackOnly) {
  const auto chosen = [&](const std::vector<std::string>& more) {
    std::vector<std::string> words{"--set", "target.gpu=a100-80gb"};
    words.insert(words.end(), more.begin(), more.end());
    return estimate(words);
  };
  const std::string sentence = "PyTorch 2.1.1 of the published runs";
  const json silent = chosen({});
  EXPECT_EQ(silent["calibration"]["name"], "current/pytorch");
  EXPECT_EQ(silent["calibration"]["status"], "none");
  EXPECT_THAT(silent["assumptions"].dump(), Not(HasSubstr(sentence)));
  const json other = chosen({"--set", "target.stack.version=2.6"});
  EXPECT_EQ(other["calibration"]["name"], "current/pytorch");
  const json same = chosen({"--set", "target.stack.version=2.1.1"});
  EXPECT_EQ(same["calibration"]["name"], "a100-80gb/pytorch");
  EXPECT_EQ(same["calibration"]["status"], "published");
  const json asked = chosen({"--calibration", "a100-80gb/pytorch"});
  EXPECT_EQ(asked["calibration"]["status"], "published");
  EXPECT_THAT(asked["assumptions"].dump(), HasSubstr(sentence));
}

// One job on GPUs with and without a published calibration: only what the hardware explains may
// differ.
TEST(OneStackTest, EveryGpuIsAnsweredForTheSamePyTorch) {
  const auto answer = [](const std::string& gpu) {
    return json::parse(run_binary({"--format", "json", "estimate", "--model", "llama-2-7b",
                                   "--batch-size", "1", "--sequence-length", "1024", "--precision",
                                   "bf16", "--lora-rank", "16", "--gpu", gpu})
                           .out);
  };
  const auto bytes = [](const json& result, const char* key) {
    return result["totals"][key].get<std::int64_t>();
  };
  const auto outside = [&](const json& result) {
    return bytes(result, "device_peak_bytes") - bytes(result, "reserved_peak_bytes");
  };
  const json consumer = answer("rtx-4090");       // 192 thousand resident threads
  const json ada = answer("l40s");                // 213
  const json small_ampere = answer("a100-40gb");  // 216
  const json ampere = answer("a100-80gb");
  const json hopper = answer("h100-80gb");  // 264
  for (const json& result : {consumer, ada, small_ampere, ampere, hopper}) {
    EXPECT_EQ(result["calibration"]["name"], "current/pytorch");
    EXPECT_LT(
        std::abs(bytes(result, "allocated_peak_bytes") - bytes(ampere, "allocated_peak_bytes")),
        std::int64_t{128} << 20);  // cuBLAS workspaces
  }
  EXPECT_EQ(small_ampere["totals"], ampere["totals"]);
  EXPECT_LT(outside(consumer), outside(ada));
  EXPECT_LT(outside(ampere), outside(hopper));
  EXPECT_LT(std::abs(outside(ada) - outside(ampere)), std::int64_t{64} << 20);
  EXPECT_LT(outside(hopper), std::int64_t{1} << 30);
}

TEST(OneStackTest, GrowingCachesAreGivenBackInsteadOfKept) {
  const json result = json::parse(
      run_binary({"--format", "json", "estimate", "--model", "gpt2", "--set",
                  "training.mode=generate", "--set", "training.new_tokens=512", "--batch-size",
                  "16", "--sequence-length", "256", "--precision", "fp16"})
          .out);
  const json& totals = result["totals"];
  EXPECT_LE(totals["reserved_peak_bytes"].get<std::int64_t>(),
            2 * totals["allocated_peak_bytes"].get<std::int64_t>());
}

TEST(UnnamedGpuTest, LiesBetweenGpusWithAndWithoutTf32) {
  const auto reserved = [](const std::vector<std::string>& target) {
    std::vector<std::string> words{
        "--format",     "json", "estimate", "--model", "vgg16", "--set", "target.calibration=none",
        "--batch-size", "32"};
    words.insert(words.end(), target.begin(), target.end());
    return json::parse(run_binary(words).out);
  };
  const json without = reserved({"--gpu", "t4"});
  const json with = reserved({"--gpu", "a100-80gb"});
  const json unnamed = reserved({"--gpu-memory", "80GiB"});
  const auto bytes = [](const json& answer, const char* key) {
    return answer["totals"][key].get<std::int64_t>();
  };
  ASSERT_LT(bytes(without, "reserved_peak_bytes"), bytes(with, "reserved_peak_bytes"));
  EXPECT_EQ(bytes(unnamed, "reserved_peak_bytes"),
            (bytes(without, "reserved_peak_bytes") + bytes(with, "reserved_peak_bytes")) / 2);
  const json of_architecture =
      reserved({"--gpu-memory", "80GiB", "--set", "target.architecture=sm_75"});
  EXPECT_EQ(bytes(of_architecture, "reserved_peak_bytes"), bytes(without, "reserved_peak_bytes"));
  EXPECT_THAT(of_architecture["assumptions"].dump(), Not(HasSubstr("no GPU is named")));
  EXPECT_THAT(unnamed["assumptions"].dump(), HasSubstr("no GPU is named"));
  EXPECT_THAT(with["assumptions"].dump(), Not(HasSubstr("no GPU is named")));
  EXPECT_LT(bytes(unnamed, "device_low_bytes"), bytes(without, "device_peak_bytes"));
  EXPECT_GT(bytes(unnamed, "device_high_bytes"), bytes(with, "device_peak_bytes"));
}

}  // namespace
}  // namespace memfathom

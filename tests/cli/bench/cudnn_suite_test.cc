// `memfathom bench run --device cudnn:...`: queries the local cuDNN without a GPU.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "tests/cli/binary.h"
#include "tests/support/temporary_directory.h"

namespace memfathom {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

constexpr const char* kConvolutions = "conv/3x3-64-64-56-b32/.*/nhwc";

class CudnnSuiteTest : public ::testing::Test {
 protected:
  std::string path(const std::string& name) const { return (directory_.path() / name).string(); }
  Outcome run(const std::string& device, const std::string& file, const std::string& filter,
              const std::vector<std::string>& more = {}) const {
    std::vector<std::string> words{"bench",    "run",      "--device", device,          "--out",
                                   path(file), "--filter", filter,     "--repetitions", "2"};
    words.insert(words.end(), more.begin(), more.end());
    return run_binary(words);
  }
  json content(const std::string& file) const {
    std::ifstream stream(path(file));
    return json::parse(stream);
  }

  TemporaryDirectory directory_;
};

TEST_F(CudnnSuiteTest, GivesTheSameComparableAnswersInEveryProcess) {
  const Outcome outcome = run("cudnn:sm_90", "h100.json", kConvolutions);
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const json file = content("h100.json");
  EXPECT_EQ(file.at("context").at("architecture"), "sm_90");
  EXPECT_NE(file.at("context").at("cudnn"), "");
  EXPECT_EQ(file.at("context").at("driver"), "");  // nothing ran
  std::map<std::string, std::vector<std::int64_t>> bytes;
  for (const json& row : file.at("benchmarks")) {
    ASSERT_TRUE(row.contains("workspace_bytes")) << row.dump();
    bytes[row.at("name").get<std::string>()].push_back(
        row.at("workspace_bytes").get<std::int64_t>());
  }
  EXPECT_EQ(bytes.size(), 9U);  // three directions in three precisions
  for (const auto& [name, both] : bytes) {
    ASSERT_EQ(both.size(), 2U) << name;
    EXPECT_EQ(both[0], both[1]) << name;
  }
  const Outcome same = run_binary({"bench", "compare", path("h100.json"), path("h100.json")});
  EXPECT_EQ(same.exit_code, 0) << same.out << same.err;

  ASSERT_EQ(run("cudnn:sm_75", "t4.json", kConvolutions).exit_code, 0);
  const Outcome other = run_binary({"bench", "compare", path("h100.json"), path("t4.json")});
  EXPECT_EQ(other.exit_code, 2) << other.out << other.err;
}

TEST_F(CudnnSuiteTest, ResumesAnInterruptedRun) {
  ASSERT_EQ(run("cudnn:sm_90", "whole.json", kConvolutions).exit_code, 0);
  const json whole = content("whole.json");
  json part = whole;
  for (int i = 0; i < 5; ++i) part.at("benchmarks").erase(part.at("benchmarks").size() - 1);
  part.at("benchmarks").at(0)["workspace_bytes"] = 12345;  // not asked again
  std::ofstream(path("run.json.partial")) << part;
  const Outcome outcome = run("cudnn:sm_90", "run.json", kConvolutions);
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("resuming an interrupted run after 13 rows"));
  const json rows = content("run.json").at("benchmarks");
  EXPECT_EQ(rows.size(), whole.at("benchmarks").size());
  EXPECT_EQ(rows.at(0).at("workspace_bytes"), 12345);
  EXPECT_FALSE(std::ifstream(path("run.json.partial")).good());
}

TEST_F(CudnnSuiteTest, AcceptsALibraryPath) {
  const Outcome outcome =
      run("cudnn:a100", "named.json", kConvolutions, {"--cudnn-library", MEMFATHOM_CUDNN_FOLDER});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(content("named.json").at("context").at("architecture"), "sm_80");
}

// With an invalid library the run continues, and failed rows contain the error.
TEST_F(CudnnSuiteTest, ReportsAttentionThatCannotBePlannedInItsRow) {
  std::ofstream(path("libcuda.so")) << "nothing\n";
  const Outcome outcome =
      run("cudnn:sm_90", "x.json", "attention", {"--libcuda", path("libcuda.so")});
  EXPECT_EQ(outcome.exit_code, 4) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("memfathom: no benchmark could be run on cudnn:sm_90: "));
  EXPECT_FALSE(std::ifstream(path("x.json")).good());
}

}  // namespace
}  // namespace memfathom

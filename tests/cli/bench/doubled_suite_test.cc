// The device suite on the CUDA device over doubles of NVIDIA's libraries, in child processes like
// on a real one.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/cli/binary.h"
#include "tests/support/temporary_directory.h"

namespace memfathom {
namespace {

using nlohmann::json;

TEST(DoubledSuiteTest, RunsEveryLayerAndComparesEqualWithItself) {
  const TemporaryDirectory directory;
  const std::string file = (directory / "doubled.json").string();
  const Outcome outcome = run_binary({"bench", "run", "--device", "cuda:0", "--scale", "tiny",
                                      "--repetitions", "1", "--quiet", "--out", file},
                                     {"MEMFATHOM_CUDA_MODULE=" MEMFATHOM_DOUBLED_MODULE});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  std::ifstream text(file);
  const json written = json::parse(text);
  EXPECT_EQ(written.at("context").at("gpu"), "Doubled A100");
  int layers = 0;
  for (const json& row : written.at("benchmarks")) {
    EXPECT_FALSE(row.contains("error_message")) << row.dump();
    const bool is_layer = row.at("name").get<std::string>().starts_with("layer/");
    if (!is_layer) continue;
    ++layers;
    EXPECT_GE(row.at("device_peak_bytes"), row.at("reserved_peak_bytes"));
    EXPECT_GE(row.at("reserved_peak_bytes"), row.at("allocated_peak_bytes"));
  }
  EXPECT_EQ(layers, 35) << "eleven layers in three types, two in one";
  EXPECT_EQ(run_binary({"bench", "compare", file, file, "--strict"}).exit_code, 0);
}

// The checks of calibrate: a figure of a driver that does not know this process is no result.
TEST(DoubledSuiteTest, RefusesASampleBelowItsReservedMemory) {
  const TemporaryDirectory directory;
  const std::string module = "MEMFATHOM_CUDA_MODULE=" MEMFATHOM_DOUBLED_MODULE;
  const std::string nvml = "MEMFATHOM_NVML=" MEMFATHOM_FAKE_NVML;
  const std::string processes = (directory / "processes").string();
  std::ofstream(processes) << "self 1 3\n";
  const Outcome outcome = run_binary(
      {"bench", "run", "--device", "cuda:0", "--scale", "tiny", "--repetitions", "1", "--quiet",
       "--filter", "^layer/linear/b1/fp32$", "--out", (directory / "doubled.json").string()},
      {module, nvml, "MEMFATHOM_FAKE_PROCESSES=" + processes});
  EXPECT_EQ(outcome.exit_code, 4) << outcome.out;
  EXPECT_THAT(outcome.err, testing::HasSubstr("is below the"));
}

}  // namespace
}  // namespace memfathom

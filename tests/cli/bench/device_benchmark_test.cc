// The Google Benchmark program of the device suite, on the CUDA device over doubles of NVIDIA's
// libraries.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/cli/binary.h"
#include "tests/support/temporary_directory.h"

namespace memfathom {
namespace {

using nlohmann::json;

TEST(DeviceBenchmarkTest, RunsTheSuiteWithTheCountersOfTheContract) {
  const TemporaryDirectory directory;
  const std::string file = (directory / "upstream.json").string();
  const std::string command = "MEMFATHOM_CUDA_MODULE=" MEMFATHOM_DOUBLED_MODULE
                              " " MEMFATHOM_DEVICE_BENCHMARK
                              " --device=cuda:0 --scale=tiny --benchmark_out_format=json"
                              " --benchmark_out=" +
                              file + " > /dev/null 2>&1";
  ASSERT_EQ(std::system(command.c_str()), 0);
  std::ifstream text(file);
  const json written = json::parse(text);
  EXPECT_EQ(written.at("context").at("gpu"), "Doubled A100");
  int layers = 0;
  for (const json& row : written.at("benchmarks")) {
    EXPECT_FALSE(row.value("error_occurred", false)) << row.dump();
    const std::string name = row.at("name");
    if (!name.starts_with("layer/")) continue;
    ++layers;
    EXPECT_GE(row.at("device_peak_bytes"), row.at("reserved_peak_bytes")) << name;
    EXPECT_GE(row.at("reserved_peak_bytes"), row.at("allocated_peak_bytes")) << name;
    EXPECT_GT(row.at("allocated_peak_bytes"), 0) << name;
    EXPECT_EQ(row.at("max_bytes_used"), row.at("device_peak_bytes")) << "the memory manager's";
  }
  EXPECT_EQ(layers, 35) << "eleven layers in three types, two in one";
  // `bench compare` reads Google Benchmark files.
  EXPECT_EQ(run_binary({"bench", "compare", file, file, "--strict"}).exit_code, 0);
}

}  // namespace
}  // namespace memfathom

#include "profiler/regression/bench_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "core/error.h"

namespace memfathom {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

BenchFile example() {
  BenchFile file;
  file.device = "cudnn:sm_90";
  file.date = "2026-11-16T12:00:00Z";
  file.program = "memfathom";
  file.repetitions = 1;
  file.environment.gpu = "NVIDIA H100 80GB HBM3";
  file.environment.cudnn = "9.19.0";
  BenchRow row;
  row.name = "conv/1";
  row.label = "forward 1x1";
  row.time_of = "question";
  row.seconds = 0.002;
  row.cpu_seconds = 0.001;
  row.counters = {{"workspace_bytes", Bytes{4096}}};
  row.operations = {{"workspace_cudnn", "forward 1x1", Bytes{4096}}};
  file.rows = {row};
  BenchRow failed;
  failed.name = "conv/2";
  failed.error = "refused: no engine";
  file.rows.push_back(failed);
  return file;
}

TEST(BenchFileTest, ReadsBackWhatItWrote) {
  const std::string text = to_text(example());
  EXPECT_EQ(to_text(bench_file_from(text, "a.json")), text);
  EXPECT_EQ(bench_file_from(text, "a.json").environment, example().environment);
}

// Keys that tools/gbench of Google Benchmark 1.9 requires.
TEST(BenchFileTest, HasTheKeysOfGoogleBenchmarksCompare) {
  const json file = json::parse(to_text(example()));
  ASSERT_TRUE(file.contains("context"));
  for (const json& entry : file.at("benchmarks")) {
    for (const char* key : {"name", "run_name", "real_time", "cpu_time", "time_unit", "run_type",
                            "repetitions", "repetition_index", "iterations", "threads"}) {
      EXPECT_TRUE(entry.contains(key)) << key;
    }
    EXPECT_TRUE(entry.at("real_time").is_number());
  }
  EXPECT_EQ(file.at("benchmarks")[0].at("real_time"), 2.0);
  EXPECT_EQ(file.at("benchmarks")[1].at("error_occurred"), true);
}

TEST(BenchFileTest, ReadsAGoogleBenchmarkFileWithoutAggregates) {
  const BenchFile file = bench_file_from(R"({
    "context": {"date": "2026-11-16T12:00:00+00:00", "host_name": "x", "executable": "./b",
                "num_cpus": 2, "caches": [], "load_avg": [1.5], "library_build_type": "release"},
    "benchmarks": [
      {"name": "BM_Fit/10", "run_name": "BM_Fit/10", "run_type": "iteration", "repetitions": 2,
       "repetition_index": 1, "threads": 1, "iterations": 7, "real_time": 3.0, "cpu_time": 2.5,
       "time_unit": "us", "bytes_per_second": 12.5},
      {"name": "BM_Fit/10_mean", "run_name": "BM_Fit/10", "run_type": "aggregate",
       "aggregate_name": "mean", "iterations": 2, "real_time": 3.0, "cpu_time": 2.5,
       "time_unit": "us"}]})",
                                         "upstream.json");
  ASSERT_EQ(file.rows.size(), 1);
  EXPECT_EQ(file.rows[0].name, "BM_Fit/10");
  EXPECT_EQ(file.rows[0].repetition, 1);
  EXPECT_DOUBLE_EQ(file.rows[0].seconds, 3e-6);
  EXPECT_EQ(file.environment.gpu, "");
}

TEST(BenchFileTest, ReportsTheLocationOfAnError) {
  const auto reason = [](const char* text) {
    try {
      bench_file_from(text, "a.json");
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kInput);
      return std::string(error.what());
    }
    return std::string("accepted");
  };
  EXPECT_THAT(reason("[]"), HasSubstr("a.json"));
  EXPECT_THAT(reason(R"({"context": {}})"), HasSubstr("benchmarks"));
  EXPECT_THAT(reason(R"({"context": {"gpu": 7}, "benchmarks": []})"), HasSubstr("gpu"));
  EXPECT_THAT(reason(R"({"context": {}, "benchmarks": [{"name": "x", "workspace_bytes": -1}]})"),
              HasSubstr("workspace_bytes"));
  EXPECT_THAT(reason(R"({"context": {}, "benchmarks": [{"name": "x", "real_time": 1,
                         "time_unit": "weeks"}]})"),
              HasSubstr("weeks"));
}

}  // namespace
}  // namespace memfathom

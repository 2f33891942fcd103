#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/cli/profiling_fixture.h"

namespace memfathom {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

class CalibrateCommandTest : public ProfilingFixture {};

constexpr const char* kFaults =
    "*'\"workload\":\"mlp/w256-d8/fp32/256MiB\"'*) kill -SEGV $$;;\n"
    "*'\"workload\":\"mlp/w256-d8/fp32/512MiB\"'*) sleep 600;;\n"
    "*'\"workload\":\"mlp/w256-d8/fp32/1024MiB\"'*)\n"
    "  request=$(printf '%s' \"$request\" | sed "
    "'s/\"ceiling_bytes\":[0-9]*/\"ceiling_bytes\":9000000/');;\n";

TEST_F(CalibrateCommandTest, RecoversTheHiddenConstantsOfAVirtualGpu) {
  const Outcome outcome = run({"calibrate", "--device", "virtual:blue", "--format", "json"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err << outcome.out;
  const json result = json::parse(outcome.out);
  EXPECT_EQ(result["schema"], "memfathom.calibrate/1");
  EXPECT_TRUE(result["usable"]);
  EXPECT_GE(result["validation"]["rows"], 10);
  EXPECT_LT(result["validation"]["median_error"], 0.03);
  EXPECT_LT(result["validation"]["p90_error"], 0.1);
  EXPECT_GE(result["validation"]["coverage_90"], 0.85);
}

TEST_F(CalibrateCommandTest, DoesNothingOnASecondRun) {
  ASSERT_EQ(run({"calibrate", "--device", "virtual:blue"}).exit_code, 0);
  const Outcome second = run({"calibrate", "--device", "virtual:blue"});
  EXPECT_EQ(second.exit_code, 0);
  EXPECT_THAT(second.out, HasSubstr("nothing to do"));
  EXPECT_EQ(
      run({"calibrate", "--device", "virtual:blue", "--if-stale", "--plan", "standard"}).exit_code,
      0);
  EXPECT_EQ(Store::open(database(), Store::Mode::kReadOnly).runs().size(), 1U);
}

TEST_F(CalibrateCommandTest, ResumesAKilledRun) {
  // The third workload kills the whole group: the database sees this like a power failure.
  const std::string power_cut =
      probe("*'\"workload\":\"mlp/w1024-d4/fp32/256MiB\"'*) kill -KILL $PPID;;\n");
  EXPECT_EQ(run({"calibrate", "--device", "virtual:blue"}, {power_cut}).exit_code, 128 + 9);
  const std::size_t before = samples().size();
  EXPECT_GT(before, 0U);
  const Outcome resumed = run({"calibrate", "--device", "virtual:blue"});
  EXPECT_EQ(resumed.exit_code, 0) << resumed.err;
  EXPECT_THAT(resumed.err, HasSubstr("samples exist"));
  EXPECT_EQ(Store::open(database(), Store::Mode::kReadOnly).runs().size(), 1U);
}

TEST_F(CalibrateCommandTest, CtrlCStopsAfterTheCurrentSampleAndTheSameCommandResumes) {
  // The first probe of the third workload sends SIGINT like a terminal; its sample is still stored.
  const std::string ctrl_c =
      probe("*'\"workload\":\"elementwise/norm-gelu/fp32/1024MiB\"'*)\n  [ -e " + folder_ +
            "/sent ] || kill -INT $PPID; : > " + folder_ + "/sent;;\n");
  const Outcome stopped = run({"calibrate", "--device", "virtual:blue"}, {ctrl_c});
  EXPECT_EQ(stopped.exit_code, 1) << stopped.err;
  EXPECT_THAT(stopped.err, HasSubstr("stopped: 3 of 36 workloads are measured and saved"));
  EXPECT_EQ(stopped.out, "");
  EXPECT_EQ(samples().size(), 3U);
  EXPECT_EQ(samples().at("elementwise/norm-gelu/fp32/1024MiB").status, SampleStatus::kOk);
  const Outcome resumed = run({"calibrate", "--device", "virtual:blue"});
  EXPECT_EQ(resumed.exit_code, 0) << resumed.err;
  EXPECT_THAT(resumed.err, HasSubstr("3 samples exist, 33 remain"));
  EXPECT_EQ(Store::open(database(), Store::Mode::kReadOnly).runs().size(), 1U);
}

TEST_F(CalibrateCommandTest, StoresProbeFaultsAsStatuses) {
  const Outcome outcome =
      run({"profile", "--device", "virtual:blue", "--filter", "mlp/", "--timeout", "5"},
          {probe(kFaults)});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  const std::map<std::string, Sample> taken = samples();
  EXPECT_EQ(taken.at("mlp/w256-d8/fp32/256MiB").status, SampleStatus::kCrashed);
  EXPECT_EQ(taken.at("mlp/w256-d8/fp32/512MiB").status, SampleStatus::kTimedOut);
  EXPECT_EQ(taken.at("mlp/w256-d8/fp32/1024MiB").status, SampleStatus::kOutOfMemory);
  EXPECT_EQ(taken.at("mlp/w1024-d4/fp32/256MiB").status, SampleStatus::kOk);
}

TEST_F(CalibrateCommandTest, MeasuresTheCpuByItsResidentMemory) {
  // LeakSanitizer cannot stop the threads of the probe's library.
  const Outcome outcome = run({"profile", "--device", "cpu", "--filter", "mlp/w256-d8/fp32/64MiB"},
                              {"ASAN_OPTIONS=detect_leaks=0"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const Sample sample = samples().at("mlp/w256-d8/fp32/64MiB");
  EXPECT_EQ(sample.status, SampleStatus::kOk) << sample.status_note;
  EXPECT_EQ(sample.device_metric, "rss");
  ASSERT_TRUE(sample.device_peak && sample.reserved_peak);
  EXPECT_GE(*sample.device_peak, *sample.reserved_peak);
  std::vector<std::string> stages;
  for (const StageReading& reading : sample.stages) stages.push_back(reading.stage);
  EXPECT_THAT(stages,
              testing::ElementsAre("baseline", "context", "cublas", "tensors", "warmup", "steps"));
}

TEST_F(CalibrateCommandTest, EstimateReadsARecordedTrace) {
  const std::string trace = folder_ + "/step.jsonl.gz";
  const Outcome profiled = run({"profile", "--device", "virtual:blue", "--filter",
                                "mlp/w1024-d4/fp32/256MiB", "--trace", trace});
  ASSERT_EQ(profiled.exit_code, 0) << profiled.err;
  std::ofstream(folder_ + "/job.yaml") << "model: {trace: step.jsonl.gz}\n";
  const Outcome estimated = run({"estimate", folder_ + "/job.yaml", "--format", "json"});
  ASSERT_LE(estimated.exit_code, 1) << estimated.err;
  EXPECT_EQ(json::parse(estimated.out)["totals"]["reserved_peak_bytes"],
            samples().at("mlp/w1024-d4/fp32/256MiB").reserved_peak->count());
}

TEST_F(CalibrateCommandTest, ListsTheWorkloadsOfAPlan) {
  const Outcome outcome =
      run({"profile", "--dry-run", "--device", "virtual:blue", "--format", "json"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const json plan = json::parse(outcome.out);
  EXPECT_LT(plan["condition_number"], 10);
  EXPECT_GE(plan["workloads"].size(), 30U);
}

TEST_F(CalibrateCommandTest, VirtualGpuNeverCalibratesARealDevice) {
  ASSERT_EQ(run({"calibrate", "--device", "virtual:blue"}).exit_code, 0);
  const Outcome outcome = run({"fit", "--device", "cpu"});
  EXPECT_EQ(outcome.exit_code, 1) << outcome.out;
  EXPECT_THAT(outcome.out, HasSubstr("refused"));
}

TEST_F(CalibrateCommandTest, ReportsBadUsageInOneSentenceAndLeavesNoFile) {
  std::filesystem::remove("x.jsonl");
  for (const std::vector<std::string>& words : std::vector<std::vector<std::string>>{
           {"calibrate", "--device", "gpu"},
           {"calibrate", "--device", "virtual:blue", "--plan", "quik"},
           {"profile", "--device", "virtual:blue", "--filter", "nothing-like-it"},
           {"profile", "--device", "virtual:blue", "--memory-ceiling", "2"},
           {"profile", "--device", "virtual:blue", "--timeout", "0"},
           {"profile", "--device", "virtual:blue", "--trace", "x.jsonl"}}) {
    const Outcome outcome = run(words);
    EXPECT_EQ(outcome.exit_code, 2) << words.back();
    EXPECT_EQ(outcome.out, "") << words.back();
  }
  EXPECT_FALSE(std::filesystem::exists("x.jsonl"));
}

TEST_F(CalibrateCommandTest, StatusIsCompleteWithoutAGpu) {
  const Outcome outcome =
      run({"status", "--format", "json"}, {"MEMFATHOM_CUDA_MODULE=/nonexistent"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const json status = json::parse(outcome.out);
  EXPECT_EQ(status["schema"], "memfathom.status/1");
  const json& cpu = status["devices"].back();
  EXPECT_EQ(cpu["name"], "cpu");
  EXPECT_TRUE(cpu["problem"].is_null());
  EXPECT_GT(cpu["memory"]["total_bytes"], 0);
  EXPECT_GT(cpu["memory"]["free_bytes"], 0);
  EXPECT_TRUE(cpu["calibrations"].is_array());
}

}  // namespace
}  // namespace memfathom

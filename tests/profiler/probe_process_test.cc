#include "profiler/probe_process.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <fstream>

#include "core/error.h"
#include "profiler/campaign.h"
#include "tests/support/temporary_directory.h"

namespace memfathom {
namespace {

using namespace literals;
using namespace std::chrono_literals;
using ::testing::HasSubstr;

// A probe that is a line of shell.
ProbeProgram shell(const std::string& line) { return {"/bin/sh", {"-c", line}}; }

ProbeRequest request() {
  ProbeRequest request;
  request.device = "virtual:test";
  request.workload = "mlp/x";
  request.job = "{}";
  request.uses.cudnn = true;
  request.ceiling = 1_GiB;
  request.seed = 18446744073709551615U;
  return request;
}

TEST(ProbeMessageTest, ReadsBackARequest) {
  const ProbeRequest sent = request();
  const ProbeRequest got = request_from(to_message(sent));
  EXPECT_EQ(got.device, sent.device);
  EXPECT_EQ(got.workload, sent.workload);
  EXPECT_EQ(got.job, sent.job);
  EXPECT_EQ(got.uses, sent.uses);
  EXPECT_EQ(got.ceiling, sent.ceiling);
  EXPECT_EQ(got.seed, sent.seed);
}

TEST(ProbeMessageTest, RefusesInvalidMessages) {
  EXPECT_THROW(request_from("{}"), Error);
  EXPECT_THROW(reply_from("half an ans"), Error);
  EXPECT_THROW(reply_from("{\"environment\":" + std::string(60'000, '[')), Error);
}

TEST(ProbeProcessTest, ReportsACrashWithItsSignal) {
  const ProbeOutcome outcome = run_probe(shell("kill -SEGV $$"), request(), 60s);
  EXPECT_EQ(outcome.status, SampleStatus::kCrashed);
  EXPECT_THAT(outcome.note, HasSubstr("signal 11"));
}

TEST(ProbeProcessTest, ReportsAKilledProbe) {
  const ProbeOutcome outcome = run_probe(shell("kill -KILL $$"), request(), 60s);
  EXPECT_EQ(outcome.status, SampleStatus::kKilled);
  EXPECT_THAT(outcome.note, HasSubstr("signal 9"));
}

TEST(ProbeProcessTest, KillsAHangingProbeAndItsChildren) {
  const ProbeOutcome outcome = run_probe(shell("sleep 600; :"), request(), 50ms);
  EXPECT_EQ(outcome.status, SampleStatus::kTimedOut);
  EXPECT_EQ(outcome.note, "no answer within 0.05 s");
}

TEST(ProbeProcessTest, KillsAProbeThatClosesItsPipesAndHangs) {
  const ProbeOutcome outcome = run_probe(shell("exec >&- 2>&-; sleep 600; :"), request(), 50ms);
  EXPECT_EQ(outcome.status, SampleStatus::kTimedOut);
}

TEST(ProbeProcessTest, ReportsTheLastErrorLineOfAFailedProbe) {
  const ProbeOutcome outcome =
      run_probe(shell("echo first >&2; echo 'memfathom: no driver' >&2; exit 4"), request(), 60s);
  EXPECT_EQ(outcome.status, SampleStatus::kFailed);
  EXPECT_EQ(outcome.note, "no driver") << "whoever prints it says who we are";
}

TEST(ProbeProcessTest, ReportsAnInvalidAnswerAsAFailure) {
  const ProbeOutcome outcome = run_probe(shell("echo '{\"half\":'"), request(), 60s);
  EXPECT_EQ(outcome.status, SampleStatus::kFailed);
  EXPECT_THAT(outcome.note, HasSubstr("is malformed"));
}

TEST(ProbeProcessTest, ToleratesAProbeThatDoesNotReadItsRequest) {
  ProbeRequest large = request();
  large.job = std::string(1 << 20, ' ');
  const ProbeOutcome outcome = run_probe(shell("exec <&-; exit 3"), large, 60s);
  EXPECT_EQ(outcome.status, SampleStatus::kFailed);
  EXPECT_EQ(outcome.note, "exit code 3");
}

TEST(ProbeProcessTest, ReportsAMissingProgram) {
  EXPECT_THROW(run_probe({"/nonexistent/probe", {}}, request(), 60s), Error);
}

// They would change the sample, and no calibration records them.
TEST(ProbeProcessTest, AProbeDoesNotInheritWhatChangesAllocations) {
  const std::array names = {"PYTORCH_CUDA_ALLOC_CONF",
                            "PYTORCH_ALLOC_CONF",
                            "CUBLAS_WORKSPACE_CONFIG",
                            "CUBLASLT_WORKSPACE_SIZE",
                            "TORCH_CUBLAS_WORKSPACE_CACHE",
                            "TORCH_CUBLASLT_UNIFIED_WORKSPACE",
                            "TORCH_CUDNN_SDPA_DEPRIORITIZED",
                            "TORCH_CUDNN_V8_API_LRU_CACHE_LIMIT",
                            "CUDA_MODULE_LOADING",
                            "PYTORCH_NO_CUDA_MEMORY_CACHING"};
  std::string line = "echo found";
  for (const char* name : names) {
    setenv(name, "leaked", 1);
    line += fmt::format(" ${{{}+{}}}", name, name);
  }
  setenv("CUDA_VISIBLE_DEVICES_TEST", "kept", 1);
  const ProbeOutcome outcome =
      run_probe(shell(line + " $CUDA_VISIBLE_DEVICES_TEST >&2; exit 4"), request(), 60s);
  EXPECT_EQ(outcome.note, "found kept");
  for (const char* name : names) unsetenv(name);
  unsetenv("CUDA_VISIBLE_DEVICES_TEST");
}

TEST(ProbeProcessTest, AProbeReceivesTheVariablesOfItsProgram) {
  setenv("CUDA_MODULE_LOADING", "leaked", 1);
  ProbeProgram program = shell("echo \"$CUDA_MODULE_LOADING\" >&2; exit 4");
  program.variables = {"CUDA_MODULE_LOADING=EAGER"};
  EXPECT_EQ(run_probe(program, request(), 60s).note, "EAGER");
  unsetenv("CUDA_MODULE_LOADING");
}

// A probe that answers with the next of some device peaks, counted in a file.
class RepeatsTest : public testing::Test {
 protected:
  CampaignOptions options(const std::string& peaks, const std::string& status = "ok") {
    CampaignOptions options;
    options.device = "virtual:test";
    options.ceiling = 1_GiB;
    options.max_repeats = 4;
    options.program =
        shell("cat > /dev/null; n=$(cat " + folder_ +
              "/n 2>/dev/null || echo 0); n=$((n+1)); echo $n > " + folder_ + "/n; set -- " +
              peaks + "; shift $((n-1)); echo '{\"environment\":{},\"memory_free_bytes\":1," +
              "\"sample\":{\"status\":\"" + status + "\",\"device_peak_bytes\":'$1'}}'");
    return options;
  }
  TemporaryDirectory directory_;
  const std::string folder_ = directory_.path().string();
};

Workload workload() {
  Workload workload;
  workload.name = "mlp/x";
  workload.family = "mlp";
  workload.job = "{}";
  return workload;
}

TEST_F(RepeatsTest, StopWhenTwoReadingsAgree) {
  const Sample sample = measure_workload(workload(), options("1000000 1001000 1 1"), 1e9);
  EXPECT_EQ(sample.repeats, 2);
  EXPECT_EQ(sample.stop_criterion, "spread below 0.5 %");
  EXPECT_EQ(sample.device_peak, Bytes{1000000});
  EXPECT_EQ(sample.workload, "mlp/x");
}

TEST_F(RepeatsTest, UseTheMedianIfReadingsDisagree) {
  const Sample sample = measure_workload(workload(), options("3000 1000 2000 4000"), 1e9);
  EXPECT_EQ(sample.repeats, 4);
  EXPECT_EQ(sample.stop_criterion, "4 repeats");
  EXPECT_EQ(sample.device_peak, Bytes{2000});
  EXPECT_NEAR(*sample.spread, 0.6, 1e-9);
}

TEST_F(RepeatsTest, UseOneReadingIfThereIsNoTime) {
  const Sample sample = measure_workload(workload(), options("3000 1000"), 0);
  EXPECT_EQ(sample.repeats, 1);
  EXPECT_EQ(sample.stop_criterion, "budget spent");
  EXPECT_EQ(sample.spread, std::nullopt);
}

TEST_F(RepeatsTest, RetryADisturbedSampleAndThenMarkIt) {
  const Sample sample = measure_workload(workload(), options("1 2 3 4", "disturbed"), 1e9);
  EXPECT_EQ(sample.status, SampleStatus::kDisturbed);
  EXPECT_EQ(sample.device_peak, Bytes{3});
}

TEST_F(RepeatsTest, AGpuSampleBelowItsReservedMemoryFails) {
  for (const char* metric : {"nvml-process", "nvml-device", "rss"}) {
    CampaignOptions given = options("1000");
    given.program = shell(fmt::format(
        "cat > /dev/null; echo '{{\"environment\":{{}},\"memory_free_bytes\":1,\"sample\":"
        "{{\"status\":\"ok\",\"device_peak_bytes\":1000,\"reserved_peak_bytes\":2000,"
        "\"device_metric\":\"{}\"}}}}'",
        metric));
    const Sample sample = measure_workload(workload(), given, 0);
    if (std::string_view(metric) == "rss") {
      EXPECT_EQ(sample.status, SampleStatus::kOk) << "mapped pages need not be resident";
      continue;
    }
    EXPECT_EQ(sample.status, SampleStatus::kFailed) << metric;
    EXPECT_THAT(sample.status_note, HasSubstr("is below the"));
  }
}

// A sample of the whole GPU in a container: at first another process starts while it is taken, and
// stays.
class WholeGpuTest : public RepeatsTest {
 protected:
  WholeGpuTest() {
    setenv("MEMFATHOM_NVML", MEMFATHOM_FAKE_NVML, 1);
    setenv("MEMFATHOM_FAKE_CONTAINER", "1", 1);
    setenv("MEMFATHOM_FAKE_PROCESSES", file_.c_str(), 1);
    std::ofstream(file_) << "7 100 0\n";
  }
  ~WholeGpuTest() override {
    for (const char* name :
         {"MEMFATHOM_NVML", "MEMFATHOM_FAKE_CONTAINER", "MEMFATHOM_FAKE_PROCESSES"})
      unsetenv(name);
  }
  CampaignOptions disturbed_times(int times, const std::string& metric) {
    CampaignOptions given = options("");
    given.device = "cuda:0";
    given.max_repeats = 1;
    given.return_limit = 0ms;
    given.program = shell(fmt::format(
        "cat > /dev/null; n=$(cat {0}/n 2>/dev/null || echo 0); n=$((n+1)); echo $n > {0}/n; "
        "[ $n -gt {1} ] || echo 9999$n 50 0 >> {2}; "
        "echo '{{\"environment\":{{}},\"memory_free_bytes\":1,\"sample\":{{\"status\":\"ok\","
        "\"device_peak_bytes\":'$n',\"device_metric\":\"{3}\"}}}}'",
        folder_, times, file_, metric));
    return given;
  }
  const std::string file_ = folder_ + "/processes";
};

TEST_F(WholeGpuTest, ASampleIsTakenAgainIfTheGpuDoesNotReturnToItsEarlierUse) {
  const Sample sample = measure_workload(workload(), disturbed_times(1, "nvml-device"), 1e9);
  EXPECT_EQ(sample.status, SampleStatus::kOk) << sample.status_note;
  EXPECT_EQ(sample.device_peak, Bytes{2}) << "of the second attempt";
}

TEST_F(WholeGpuTest, ASampleOfAGpuThatNeverReturnsIsDisturbed) {
  const Sample sample = measure_workload(workload(), disturbed_times(9, "nvml-device"), 1e9);
  EXPECT_EQ(sample.status, SampleStatus::kDisturbed);
  EXPECT_THAT(sample.status_note, HasSubstr("before the probe"));
}

// Without NVML's figure a second probe tells the free memory, which is 1 byte in the first reply.
TEST_F(WholeGpuTest, ASampleByMemGetInfoIsHeldAgainstTheFreeMemoryAfterIt) {
  for (const std::int64_t after : {std::int64_t{1}, std::int64_t{1} << 30}) {
    CampaignOptions given = options("");
    given.device = "cuda:0";
    given.max_repeats = 1;
    given.program = shell(
        fmt::format("if grep -q mlp; then f=1; s='{{\"status\":\"ok\",\"device_peak_bytes\":5,"
                    "\"device_metric\":\"mem-get-info\"}}'; else f={}; s=null; fi; "
                    "echo '{{\"environment\":{{}},\"memory_free_bytes\":'$f',\"sample\":'$s'}}'",
                    after));
    EXPECT_EQ(measure_workload(workload(), given, 1e9).status,
              after == 1 ? SampleStatus::kOk : SampleStatus::kDisturbed);
  }
}

TEST_F(WholeGpuTest, AFigureOfTheProcessIsNotDisturbedByOthers) {
  const Sample sample = measure_workload(workload(), disturbed_times(9, "nvml-process"), 1e9);
  EXPECT_EQ(sample.status, SampleStatus::kOk) << sample.status_note;
  EXPECT_EQ(sample.device_peak, Bytes{1});
}

TEST_F(RepeatsTest, StopBeforeTheNextWorkloadOnRequest) {
  std::atomic<bool> stop{false};
  const int taken = measure_all(
      {workload(), workload(), workload()}, options("1 1 1 1 1 1"),
      [&](const Sample&) { stop = true; }, stop);
  EXPECT_EQ(taken, 1);
}

}  // namespace
}  // namespace memfathom

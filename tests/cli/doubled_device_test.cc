// The commands on the CUDA device over doubles of NVIDIA's libraries, in child processes like a
// real one.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/cli/profiling_fixture.h"

namespace memfathom {
namespace {

using namespace literals;
using nlohmann::json;

const std::string kDoubled = "MEMFATHOM_CUDA_MODULE=" MEMFATHOM_DOUBLED_MODULE;
const std::string kFakeNvml = "MEMFATHOM_NVML=" MEMFATHOM_FAKE_NVML;

// The doubles compute on one core, so the probe runs the plan's jobs with batch 4.
class DoubledDeviceTest : public ProfilingFixture {
 protected:
  std::string small_probe(const std::string& cases) {
    return probe(cases +
                 "*) ;;\nesac\nrequest=$(printf '%s' \"$request\" | sed "
                 "'s/batch_size\\\\\":[0-9]*/batch_size\\\\\":4/')\ncase x in\n");
  }
};

// calibrate measures all workloads, stores each status, and refuses to fit one sample.
TEST_F(DoubledDeviceTest, CalibratesAndRecordsFaultsAsStatuses) {
  const std::string faults = small_probe(
      "*activations/fp32/512MiB*) kill -SEGV $$;;\n"
      "*activations/fp32/1024MiB*)\n"
      "  request=$(printf '%s' \"$request\" | sed "
      "'s/\"ceiling_bytes\":[0-9]*/\"ceiling_bytes\":1000/');;\n");
  const Outcome outcome = run({"calibrate", "--device", "cuda:0", "--filter",
                               "elementwise/activations", "--timeout", "110", "--format", "json"},
                              {kDoubled, faults});
  EXPECT_EQ(outcome.exit_code, 1) << outcome.err;
  EXPECT_THAT(outcome.err, testing::HasSubstr("--device cuda:0 --framework pytorch"));
  EXPECT_THAT(outcome.err, testing::HasSubstr("1 of 3 samples are unusual"));
  EXPECT_THAT(outcome.err, testing::HasSubstr("256 MiB outside the allocator after context"));
  const json result = json::parse(outcome.out);
  EXPECT_EQ(result["failed_samples"], 2);
  EXPECT_EQ(result["usable"], false);
  const std::map<std::string, Sample> taken = samples();
  const Sample& good = taken.at("elementwise/activations/fp32/256MiB");
  EXPECT_EQ(good.status, SampleStatus::kOk) << good.status_note;
  EXPECT_EQ(good.device_metric, "mem-get-info");
  ASSERT_TRUE(good.device_peak && good.reserved_peak);
  EXPECT_EQ(*good.device_peak - *good.reserved_peak, 256_MiB)
      << "the doubles have a context and no modules";
  EXPECT_EQ(taken.at("elementwise/activations/fp32/512MiB").status, SampleStatus::kCrashed);
  EXPECT_EQ(taken.at("elementwise/activations/fp32/1024MiB").status, SampleStatus::kOutOfMemory);
}

TEST_F(DoubledDeviceTest, RecordsKilledAndTimedOutProbes) {
  const std::string faults = small_probe(
      "*activations/fp32/256MiB*) kill -KILL $$;;\n"
      "*activations/fp32/512MiB*) sleep 600;;\n"
      "*activations/fp32/1024MiB*) echo 'the driver fell off' >&2; exit 4;;\n");
  const Outcome outcome = run(
      {"calibrate", "--device", "cuda:0", "--filter", "elementwise/activations", "--timeout", "1"},
      {kDoubled, faults});
  EXPECT_EQ(outcome.exit_code, 1) << outcome.err;
  const std::map<std::string, Sample> taken = samples();
  EXPECT_EQ(taken.at("elementwise/activations/fp32/256MiB").status, SampleStatus::kKilled);
  EXPECT_EQ(taken.at("elementwise/activations/fp32/512MiB").status, SampleStatus::kTimedOut);
  const Sample& failed = taken.at("elementwise/activations/fp32/1024MiB");
  EXPECT_EQ(failed.status, SampleStatus::kFailed);
  EXPECT_EQ(failed.status_note, "the driver fell off");
}

// A fake NVML next to the doubled device, in a container whose driver does not report the memory of
// processes: this process appears with its context, and another process appears during the first
// attempt.
TEST_F(DoubledDeviceTest, RepeatsASampleDisturbedByAnotherProcess) {
  const std::string calm = folder_ + "/calm";
  const std::string disturbed = folder_ + "/disturbed";
  std::ofstream(calm) << "self 700 3\n";
  std::ofstream(disturbed) << "self 700 3\n99999 100 5\n";
  const std::string first_time_disturbed =
      small_probe("*activations*) if [ ! -e " + folder_ + "/again ]; then : > " + folder_ +
                  "/again; export MEMFATHOM_FAKE_PROCESSES=" + disturbed + "; fi;;\n");
  const Outcome outcome = run({"profile", "--device", "cuda:0", "--filter",
                               "elementwise/activations/fp32/256MiB", "--timeout", "110"},
                              {kDoubled, first_time_disturbed, kFakeNvml,
                               "MEMFATHOM_FAKE_CONTAINER=1", "MEMFATHOM_FAKE_PROCESSES=" + calm});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  const Sample sample = samples().at("elementwise/activations/fp32/256MiB");
  EXPECT_EQ(sample.status, SampleStatus::kOk) << sample.status_note;
  EXPECT_EQ(sample.device_metric, "nvml-device");
  EXPECT_EQ(sample.device_peak, Bytes{700 << 20});
  EXPECT_TRUE(std::filesystem::exists(folder_ + "/again"));
}

TEST_F(DoubledDeviceTest, AnotherProcessDoesNotDisturbAFigureOfThisProcess) {
  const std::string shared = folder_ + "/shared";
  std::ofstream(shared) << "self 700 3\n99999 100 5\n";
  const Outcome outcome =
      run({"profile", "--device", "cuda:0", "--filter", "elementwise/activations/fp32/256MiB",
           "--timeout", "110"},
          {kDoubled, small_probe(""), kFakeNvml, "MEMFATHOM_FAKE_PROCESSES=" + shared});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  const Sample sample = samples().at("elementwise/activations/fp32/256MiB");
  EXPECT_EQ(sample.status, SampleStatus::kOk) << sample.status_note;
  EXPECT_EQ(sample.device_metric, "nvml-process");
  EXPECT_EQ(sample.device_peak, Bytes{700 << 20});
}

TEST_F(DoubledDeviceTest, MarksASampleDisturbedInEveryAttempt) {
  const std::string disturbed = folder_ + "/disturbed";
  std::ofstream(disturbed) << "self 700 3\n99999 100 5\n";
  const Outcome outcome = run({"profile", "--device", "cuda:0", "--filter",
                               "elementwise/activations/fp32/256MiB", "--timeout", "110"},
                              {kDoubled, small_probe(""), kFakeNvml, "MEMFATHOM_FAKE_CONTAINER=1",
                               "MEMFATHOM_FAKE_PROCESSES=" + disturbed});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  const Sample sample = samples().at("elementwise/activations/fp32/256MiB");
  EXPECT_EQ(sample.status, SampleStatus::kDisturbed);
  EXPECT_EQ(sample.status_note, "process 99999 started using the device");
}

#ifdef MEMFATHOM_FAKE_CUPTI
// CUPTI over the doubled device: every allocation is followed by one that no reading sees.
class DriverRecordsTest : public DoubledDeviceTest {
 protected:
  Outcome profile(std::vector<std::string> options, std::vector<std::string> variables,
                  const std::string& cases = "") {
    std::vector<std::string> words{
        "profile",   "--device", "cuda:0", "--filter", "elementwise/activations/fp32/256MiB",
        "--timeout", "110",      "-v"};
    words.insert(words.end(), options.begin(), options.end());
    variables.insert(variables.end(),
                     {kDoubled, small_probe(cases), "MEMFATHOM_CUPTI=" MEMFATHOM_FAKE_CUPTI,
                      "FAKE_CUPTI_TRANSIENT=33554432"});
    return run(words, variables);
  }
  Sample sample() const { return samples().at("elementwise/activations/fp32/256MiB"); }
};

TEST_F(DriverRecordsTest, APeakBetweenReadingsIsAddedToTheSample) {
  const std::string file = folder_ + "/allocations.csv";
  const Outcome sampled = profile({"--no-cupti"}, {});
  ASSERT_EQ(sampled.exit_code, 0) << sampled.err;
  const Sample without = sample();
  EXPECT_EQ(without.device_metric, "mem-get-info");
  std::filesystem::remove(database());  // two samples of one second have no order
  const Outcome outcome = profile({"--driver-allocations", file}, {});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const Sample with = sample();
  EXPECT_EQ(with.device_metric, "mem-get-info+cupti");
  EXPECT_EQ(*with.device_peak, *without.device_peak + 32_MiB);
  EXPECT_EQ(with.reserved_peak, without.reserved_peak);
  EXPECT_THAT(outcome.err, testing::HasSubstr("libcufft.so.12 32.00 MiB"));
  EXPECT_THAT(outcome.err, testing::HasSubstr("libmemfathom_cuda.so"));
  std::ifstream table(file);
  const std::string text((std::istreambuf_iterator<char>(table)), {});
  EXPECT_THAT(text, testing::StartsWith("workload,microseconds,before,operation,memory,bytes,"));
  EXPECT_THAT(text, testing::HasSubstr(",alloc,device,33554432,0x1000000000000000,"
                                       "\"/cuda/lib64/libcufft.so.12\""));
}

TEST_F(DriverRecordsTest, WhereCuptiDoesNotRecordPeaksAreSampled) {
  const Outcome refused = profile({}, {"FAKE_CUPTI_REFUSES=35"});
  ASSERT_EQ(refused.exit_code, 0) << refused.err;
  EXPECT_EQ(sample().device_metric, "mem-get-info");
  EXPECT_THAT(refused.err,
              testing::HasSubstr("peaks are sampled every 5 ms: CUPTI cannot record memory "
                                 "operations: CUPTI_ERROR_INSUFFICIENT_PRIVILEGES"));
  const Outcome dropped = profile({}, {"FAKE_CUPTI_DROPS=2"});
  EXPECT_EQ(sample().device_metric, "mem-get-info");
  EXPECT_THAT(dropped.err, testing::HasSubstr("CUPTI dropped 2 records"));
}

// A library of profiling tools must not cost a sample.
TEST_F(DriverRecordsTest, AProbeThatDiesWithCuptiCostsNothingElse) {
  const Outcome outcome = profile({}, {}, "*'\"driver_records\":true'*) kill -SEGV $$;;\n");
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(sample().status, SampleStatus::kOk);
  EXPECT_EQ(sample().device_metric, "mem-get-info");
  EXPECT_THAT(outcome.err, testing::HasSubstr("a probe with CUPTI crashed: signal 11"));
}
#endif

// The environment cannot decide it, the option can, and its samples are kept apart.
TEST_F(DoubledDeviceTest, RecordsWhenKernelsAreLoaded) {
  const auto profile_with = [&](std::vector<std::string> more) {
    std::vector<std::string> words{"profile", "--device", "cuda:0", "--filter",
                                   "elementwise/activations/fp32/256MiB"};
    words.insert(words.end(), more.begin(), more.end());
    return run(words, {kDoubled, small_probe(""), "CUDA_MODULE_LOADING=EAGER"});
  };
  const auto environments = [&] {
    std::map<std::string, std::string> stack_keys;  // by mode
    for (const memfathom::Run& known : Store::open(database(), Store::Mode::kReadOnly).runs())
      stack_keys[known.environment.module_loading] = known.environment.stack_key();
    return stack_keys;
  };
  ASSERT_EQ(profile_with({}).exit_code, 0);
  ASSERT_EQ(environments().size(), 1U);
  EXPECT_TRUE(environments().contains("lazy")) << "the variable was not inherited";
  ASSERT_EQ(profile_with({"--module-loading", "eager"}).exit_code, 0);
  ASSERT_TRUE(environments().contains("eager"));
  EXPECT_NE(environments().at("lazy"), environments().at("eager"));
  const Outcome refused = profile_with({"--module-loading", "often"});
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_THAT(refused.err, testing::HasSubstr("--module-loading is \"often\""));
}

TEST_F(DoubledDeviceTest, StatusShowsTheDevice) {
  const Outcome outcome = run({"status", "--format", "json"}, {kDoubled});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const json gpu = json::parse(outcome.out)["devices"][0];
  EXPECT_EQ(gpu["name"], "cuda:0");
  EXPECT_EQ(gpu["gpu"], "Doubled A100");
  EXPECT_EQ(gpu["memory"]["source"], "cudaMemGetInfo");
  const Outcome shown = run({"status"}, {kDoubled});
  EXPECT_THAT(shown.out, testing::HasSubstr("cuda:0: sm_80, driver"));
  EXPECT_THAT(shown.out, testing::HasSubstr("memfathom calibrate --device cuda:0 --framework "
                                            "pytorch"));
}

// A build without CUDA can still calibrate PyTorch on a machine with a GPU.
TEST_F(DoubledDeviceTest, StatusShowsAGpuWithoutTheModule) {
  const Outcome outcome = run({"status", "--format", "json"},
                              {"MEMFATHOM_CUDA_MODULE=/nonexistent/module.so", kFakeNvml});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const json gpu = json::parse(outcome.out)["devices"][0];
  EXPECT_EQ(gpu["gpu"], "Pretend H100");
  EXPECT_EQ(gpu["architecture"], "sm_90");
  EXPECT_EQ(gpu["environment"]["memory_total_bytes"], (80_GiB).count());
  EXPECT_THAT(gpu["problem"].get<std::string>(), testing::HasSubstr("was not found"));
}

}  // namespace
}  // namespace memfathom

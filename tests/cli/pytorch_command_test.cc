// calibrate --framework pytorch through the real binary, with scripts in place of the Python probe.
// All values are invented and only show the protocol (tests/data/pytorch_probe).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/cli/profiling_fixture.h"
#include "tests/support/paths.h"

namespace memfathom {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

class PytorchCommandTest : public ProfilingFixture {
 protected:
  // A shell script in place of Python; it must receive the probe's source.
  std::string python(const std::string& body) {
    std::string path = folder_ + "/python";
    std::ofstream(path)
        << "#!/bin/sh\n[ \"$1\" = -c ] || exit 3\ncase \"$*\" in *'import torch'*) ;; "
           "*) exit 3;; esac\n"
        << body;
    chmod(path.c_str(), 0700);
    return path;
  }
  // A simulated GPU that reports an A100 with PyTorch.
  std::string disguised(const std::string& version) {
    return python("sed 's/\"device\":\"cuda:0\"/\"device\":\"virtual:blue\"/' | " MEMFATHOM_BINARY
                  " __probe | sed -e 's/\"virtual:blue\"/\"NVIDIA A100-SXM4-40GB\"/' "
                  "-e 's/\"architecture\":\"virtual\"/\"architecture\":\"sm_80\"/' "
                  "-e 's/\"framework\":\"memfathom\"/\"framework\":\"pytorch\"/' "
                  "-e 's/\"memory_total_bytes\":[0-9]*/\"memory_total_bytes\":42505273344/' "
                  "-e 's/\"framework_version\":\"[^\"]*\"/\"framework_version\":\"" +
                  version + "\"/'\n");
  }
  Outcome calibrate(const std::string& path, std::vector<std::string> more = {}) {
    std::vector<std::string> words{"calibrate", "--device", "cuda:0",   "--framework", "pytorch",
                                   "--format",  "json",     "--python", path};
    words.insert(words.end(), more.begin(), more.end());
    // This test does not need cuDNN.
    return run(words, {"XDG_CACHE_HOME=" + folder_});
  }
};

TEST_F(PytorchCommandTest, StoresRecordedAnswersAsPytorchSamples) {
  const std::string data = test_data().string() + "/pytorch_probe/";
  const std::string path = python("case \"$(cat)\" in *'\"workload\":\"\"'*) cat " + data +
                                  "environment.json;; *) cat " + data + "sample.json;; esac\n");
  const Outcome outcome = run({"profile", "--device", "cuda:0", "--framework", "pytorch",
                               "--python", path, "--filter", "mlp/w256-d8/fp32/256MiB"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const std::vector<StoredSample> stored =
      Store::open(database(), Store::Mode::kReadOnly).samples({});
  ASSERT_EQ(stored.size(), 1U);
  EXPECT_EQ(stored[0].environment->framework, "pytorch");
  EXPECT_EQ(stored[0].environment->framework_version, "2.15.0+cu132");
  EXPECT_EQ(stored[0].environment->cudnn, "9.19.0");
  const Sample& sample = stored[0].sample;
  EXPECT_EQ(sample.status, SampleStatus::kOk);
  EXPECT_EQ(sample.family, "mlp");
  EXPECT_EQ(sample.allocated_peak, Bytes{200000512});
  EXPECT_EQ(sample.reserved_peak, Bytes{232783872});
  EXPECT_EQ(sample.device_peak, Bytes{836763648});
  EXPECT_EQ(sample.device_metric, "nvml-process");
  EXPECT_EQ(sample.stages.size(), 6U);
  EXPECT_EQ(sample.repeats, 2) << "two readings that agree";
}

TEST_F(PytorchCommandTest, CalibrationAppliesUntilPyTorchChanges) {
  const Outcome outcome = calibrate(disguised("2.15.0"));
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err << outcome.out;
  EXPECT_EQ(json::parse(outcome.out)["calibration"]["name"], "a100-40gb/pytorch");
  const Outcome estimated = run({"estimate", "--model", "gpt2", "--sequence-length", "128", "--gpu",
                                 "a100-40gb", "--format", "json"},
                                {"XDG_CACHE_HOME=" + folder_});
  ASSERT_EQ(estimated.exit_code, 0) << estimated.err;
  const json answer = json::parse(estimated.out);
  EXPECT_EQ(answer["calibration"]["status"], "calibrated");
  EXPECT_EQ(answer["calibration"]["environment"]["framework_version"], "2.15.0");

  const Outcome same = calibrate(disguised("2.15.0"), {"--if-stale"});
  EXPECT_EQ(same.exit_code, 0);
  EXPECT_EQ(json::parse(same.out)["done"], false);
  const Outcome upgraded = calibrate(disguised("2.16.0"), {"--if-stale"});
  EXPECT_EQ(upgraded.exit_code, 0) << upgraded.err;
  EXPECT_EQ(json::parse(upgraded.out)["done"], true);
}

TEST_F(PytorchCommandTest, ReportsAnUnusablePythonInOneSentence) {
  const Outcome none = calibrate("/nonexistent/python");
  EXPECT_EQ(none.exit_code, 4);
  EXPECT_THAT(none.err, HasSubstr("cannot start the probe /nonexistent/python"));
  const Outcome bare = calibrate(python("echo 'python3 has no torch; use --python' >&2; exit 1\n"));
  EXPECT_EQ(bare.exit_code, 4);
  EXPECT_THAT(bare.err, HasSubstr("cuda:0 cannot be used: python3 has no torch"));
}

class CollectivesTest : public PytorchCommandTest {
 protected:
  // A machine with so many GPUs. Communicators take 200 MiB, 12 more for each rank beyond two, and
  // the second one 40; with given channels 100 MiB and 6 a channel.
  std::string python_with(int devices) {
    const std::string data = test_data().string() + "/pytorch_probe/";
    return python(R"sh(request=$(cat); mib=0
case "$request" in
*'channels\":16'*) mib=196;;
*'channels\":1,'*) mib=106;;
*'channels\":4'*) mib=124;;
*'ranks\":2'*) mib=200;;
*'ranks\":4'*) mib=224;;
*'ranks\":8'*) mib=272;;
esac
first=$((603979776 + mib * 1048576))
if [ $mib = 0 ]; then sed 's/"sample": null/"sample": null, "devices": )sh" +
                  std::to_string(devices) + "/' " + data +
                  "environment.json\nelse sed -e \"s/COMMUNICATOR/$first/\" -e "
                  "\"s/SECOND/$((first + 41943040))/\" " +
                  data + "collectives.json\nfi\n");
  }
  Outcome profile(int devices, const std::string& filter) {
    return run({"profile", "--device", "cuda:0", "--framework", "pytorch", "--python",
                python_with(devices), "--collectives", "--filter", filter, "--format", "json"});
  }
};

TEST_F(CollectivesTest, MeasuresCommunicatorsByRanksAndChannels) {
  const Outcome outcome = profile(8, "collectives/");
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  std::vector<std::string> names;
  const json document = json::parse(outcome.out);
  for (const json& sample : document["samples"]) {
    EXPECT_EQ(sample["status"], "ok") << sample;
    names.push_back(sample["workload"]);
  }
  EXPECT_THAT(names, ::testing::ElementsAre("collectives/nccl/2-ranks", "collectives/nccl/4-ranks",
                                            "collectives/nccl/8-ranks",
                                            "collectives/nccl/2-ranks-1-channels",
                                            "collectives/nccl/2-ranks-4-channels",
                                            "collectives/nccl/2-ranks-16-channels"));
}

TEST_F(CollectivesTest, OneGpuIsToldWhatItCannotMeasure) {
  const Outcome outcome =
      run({"profile", "--device", "cuda:0", "--framework", "pytorch", "--python", python_with(1),
           "--collectives", "--list", "--format", "json"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const json left_out = json::parse(outcome.out)["left_out"];
  ASSERT_FALSE(left_out.empty());
  EXPECT_EQ(left_out.back()["name"], "collectives/nccl");
  EXPECT_EQ(left_out.back()["reason"], "communicators need two GPUs or more, and 1 is here");
}

TEST_F(CollectivesTest, AFilterThatLeavesNothingSaysWhy) {
  const Outcome outcome = profile(1, "collectives/");
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_THAT(outcome.err, HasSubstr("communicators need two GPUs or more, and 1 is here"));
}

TEST_F(CollectivesTest, NeedPyTorch) {
  const Outcome outcome = run({"profile", "--collectives"});
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_THAT(outcome.err, HasSubstr("add --framework pytorch"));
}

TEST_F(CollectivesTest, AreCoefficientsOfTheFitWithTheirErrors) {
  const Outcome profiled = profile(8, "collectives/");
  ASSERT_EQ(profiled.exit_code, 0) << profiled.err;
  const std::string id = json::parse(profiled.out)["run"];
  const Outcome fitted = run({"fit", "--run", id, "--format", "json"});
  const json calibration = json::parse(fitted.out)["calibration"];
  std::map<std::string, double> mib;
  for (const json& one : calibration["coefficients"]) {
    mib[one["name"]] = one["value"].get<double>() / (1 << 20);
    if (!one["name"].get<std::string>().starts_with("communicator")) continue;
    EXPECT_GT(one["standard_error"].get<double>(), 0) << one;
  }
  EXPECT_NEAR(mib["communicator.first"], 200, 0.01);
  EXPECT_NEAR(mib["communicator.next"], 40, 0.01);
  EXPECT_NEAR(mib["communicator.per_rank"], 12, 0.01);
  EXPECT_NEAR(mib["communicator.per_channel"], 6, 0.01);
}

TEST_F(PytorchCommandTest, RefusesIncompatibleOptions) {
  for (const std::vector<std::string>& words : std::vector<std::vector<std::string>>{
           {"calibrate", "--framework", "tensorflow"},
           {"calibrate", "--python", "/usr/bin/python3"},
           {"calibrate", "--framework", "pytorch", "--device", "virtual:blue"}}) {
    const Outcome outcome = run(words);
    EXPECT_EQ(outcome.exit_code, 2) << words.back() << outcome.err;
  }
}

}  // namespace
}  // namespace memfathom

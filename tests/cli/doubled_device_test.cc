// The commands on the CUDA device over doubles of NVIDIA's libraries, in child processes like a
// real one.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/cli/profiling_fixture.h"

namespace memfathom {
namespace {

using nlohmann::json;

const std::string kDoubled = "MEMFATHOM_CUDA_MODULE=" MEMFATHOM_DOUBLED_MODULE;

class DoubledDeviceTest : public ProfilingFixture {};

// One size of three runs; the doubles compute on one core, and the smallest job of the plan is
// enough.
TEST_F(DoubledDeviceTest, IsMeasuredAndItsFaultsAreStatuses) {
  const std::string faults = probe(
      "*activations/fp32/512MiB*) kill -SEGV $$;;\n"
      "*activations/fp32/1024MiB*)\n"
      "  request=$(printf '%s' \"$request\" | sed "
      "'s/\"ceiling_bytes\":[0-9]*/\"ceiling_bytes\":9000000/');;\n");
  const Outcome outcome = run(
      {"profile", "--device", "cuda:0", "--filter", "elementwise/activations", "--timeout", "110"},
      {kDoubled, faults});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  const std::map<std::string, Sample> taken = samples();
  const Sample& good = taken.at("elementwise/activations/fp32/256MiB");
  EXPECT_EQ(good.status, SampleStatus::kOk) << good.status_note;
  EXPECT_EQ(good.device_metric, "mem-get-info");
  EXPECT_EQ(good.device_peak, good.reserved_peak);  // the doubles have no context and no modules
  EXPECT_EQ(taken.at("elementwise/activations/fp32/512MiB").status, SampleStatus::kCrashed);
  EXPECT_EQ(taken.at("elementwise/activations/fp32/1024MiB").status, SampleStatus::kOutOfMemory);
}

TEST_F(DoubledDeviceTest, AProbeThatHangsIsTimedOut) {
  const std::string hanging = probe("*activations*) sleep 600;;\n");
  const Outcome outcome = run({"profile", "--device", "cuda:0", "--filter",
                               "elementwise/activations/fp32/256MiB", "--timeout", "0.2"},
                              {kDoubled, hanging});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(samples().at("elementwise/activations/fp32/256MiB").status, SampleStatus::kTimedOut);
}

TEST_F(DoubledDeviceTest, AgreesWithTheReferenceInTheSelftest) {
  const Outcome outcome = run({"selftest", "--device", "cuda:0", "--format", "json"}, {kDoubled});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err << outcome.out;
  const json report = json::parse(outcome.out);
  EXPECT_EQ(report["device"], "cuda:0");
  EXPECT_EQ(report["environment"]["gpu"], "Doubled A100");
  EXPECT_GT(report["cases"].size(), 500U);
  EXPECT_EQ(report["cases"].back()["name"], "layer conv-bn-relu-pool");
}

TEST_F(DoubledDeviceTest, IsShownByStatus) {
  const Outcome outcome = run({"status", "--format", "json"}, {kDoubled});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const json card = json::parse(outcome.out)["devices"][0];
  EXPECT_EQ(card["name"], "cuda:0");
  EXPECT_EQ(card["gpu"], "Doubled A100");
  EXPECT_EQ(card["memory"]["source"], "cudaMemGetInfo");
}

}  // namespace
}  // namespace memfathom

#include "profiler/plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "core/error.h"

namespace memfathom {
namespace {

using namespace literals;
using ::testing::HasSubstr;

// Predicts memory per sample, and derives the libraries from the layers.
class CountingRunner final : public JobRunner {
 public:
  Forecast forecast(const std::string& job) const override {
    const auto document = nlohmann::json::parse(job);
    const auto batch = document["training"]["batch_size"].get<std::int64_t>();
    const auto has = [&](const char* word) { return job.find(word) != std::string::npos; };
    const bool product = has("linear") || has("attention") || has("transformer") || has("spectral");
    return {3_MiB + Bytes{1 << 20} * batch,
            {product || has("fno"), has("conv2d") || has("fno"), has("spectral") || has("fno")}};
  }
  void run(Session&, const std::string&, const StageCallback&) const override {}
  FrameworkPolicy policy(const Environment&) const override { return {}; }
};

TEST(PlanTest, SizesApproachTheirTargetFromBelow) {
  const Plan plan = make_plan("quick", DeviceKind::kCpu, 100_GiB, CountingRunner());
  ASSERT_FALSE(plan.workloads.empty());
  for (const Workload& workload : plan.workloads) {
    const std::string size = workload.name.substr(workload.name.rfind('/') + 1);
    const Bytes target = parse_bytes(size);
    EXPECT_LE(workload.forecast.reserved, target) << workload.name;
    EXPECT_GE(workload.forecast.reserved * 3, target * 2) << workload.name;
  }
}

TEST(PlanTest, EveryModelIsFittedAtTwoSizesAndHasOneForValidation) {
  for (const char* name : {"quick", "standard", "full"}) {
    const Plan plan = make_plan(name, DeviceKind::kCuda, 100_GiB, CountingRunner());
    std::map<std::string, std::pair<int, int>> counts;
    std::set<std::string> names;
    for (const Workload& workload : plan.workloads) {
      EXPECT_TRUE(names.insert(workload.name).second) << workload.name;
      auto& [fitted, kept] = counts[workload.name.substr(0, workload.name.rfind('/'))];
      ++(workload.validation ? kept : fitted);
    }
    for (const auto& [model, count] : counts) {
      EXPECT_GE(count.first, 2) << name << " " << model;
      EXPECT_GE(count.second, 1) << name << " " << model;
    }
  }
}

TEST(PlanTest, TheQuickPlanHasEnoughFittedJobsForANinetyPercentInterval) {
  const Plan plan = make_plan("quick", DeviceKind::kCpu, 100_GiB, CountingRunner());
  const auto fitted = std::count_if(plan.workloads.begin(), plan.workloads.end(),
                                    [](const Workload& workload) { return !workload.validation; });
  EXPECT_GE(fitted, 19);
}

TEST(PlanTest, SeparatesTheConstantsOfAllLibraries) {
  for (const char* name : {"quick", "standard", "full"}) {
    const Plan plan = make_plan(name, DeviceKind::kCuda, 100_GiB, CountingRunner());
    EXPECT_LT(design_condition(plan.workloads), 10) << name;
  }
}

TEST(PlanTest, PytorchPlanContainsOnlySupportedWorkloads) {
  const Plan plan =
      make_plan("full", DeviceKind::kCuda, 100_GiB, CountingRunner(), Framework::kPytorch);
  EXPECT_LT(design_condition(plan.workloads), 10);
  for (const Workload& workload : plan.workloads) {
    for (const char* absent : {"neuralop", "flash"})
      EXPECT_EQ(workload.job.find(absent), std::string::npos) << workload.name;
    if (workload.family == "decoder") continue;
    EXPECT_EQ(workload.job.find("\"fp16\""), std::string::npos) << workload.name;
  }
  const Plan quick =
      make_plan("quick", DeviceKind::kCuda, 100_GiB, CountingRunner(), Framework::kPytorch);
  EXPECT_EQ(quick.workloads.size(),
            make_plan("quick", DeviceKind::kCuda, 100_GiB, CountingRunner()).workloads.size());
}

TEST(PlanTest, TheStandardPlanOfPytorchHasWhatPeopleRun) {
  const auto names_of = [](DeviceKind kind, int capability) {
    std::set<std::string> names;
    for (const Workload& workload :
         make_plan("standard", kind, 100_GiB, CountingRunner(), Framework::kPytorch, capability)
             .workloads)
      names.insert(workload.name.substr(0, workload.name.rfind('/')));
    return names;
  };
  const std::set<std::string> ampere = names_of(DeviceKind::kCuda, 80);
  for (const char* name :
       {"decoder/v32000/bf16", "decoder/v32000/fp16", "decoder/v32000-expandable/bf16",
        "decoder/v32000-checkpointed/bf16", "decoder/v32000-lora/bf16", "decoder/v32000-8bit/bf16",
        "compiled/v32000/bf16", "cuda-graph/v32000/bf16"})
    EXPECT_TRUE(ampere.contains(name)) << name;
  const std::set<std::string> turing = names_of(DeviceKind::kCuda, 75);
  EXPECT_FALSE(turing.contains("decoder/v32000/bf16"));
  EXPECT_TRUE(turing.contains("decoder/v32000/fp16"));
  const std::set<std::string> cpu = names_of(DeviceKind::kCpu, 0);
  EXPECT_TRUE(cpu.contains("decoder/v32000-lora/fp32"));
  EXPECT_FALSE(cpu.contains("cuda-graph/v32000/bf16"));
}

TEST(PlanTest, OnlyTheProbeKnowsHowAJobIsExecuted) {
  const Plan plan =
      make_plan("standard", DeviceKind::kCuda, 100_GiB, CountingRunner(), Framework::kPytorch, 80);
  for (const Workload& workload : plan.workloads) {
    const auto job = nlohmann::json::parse(workload.job);
    EXPECT_EQ(job.contains("execution"), workload.family == "cuda-graph") << workload.name;
    EXPECT_EQ(job["training"].contains("compile"), workload.family == "compiled") << workload.name;
    if (workload.family != "cuda-graph" && workload.family != "compiled") continue;
    EXPECT_FALSE(workload.validation) << workload.name;
  }
}

TEST(PlanTest, MeasuresAGpuWithoutBf16InFp16) {
  const auto has = [](const Plan& plan, const char* type) {
    return std::any_of(plan.workloads.begin(), plan.workloads.end(), [&](const Workload& one) {
      return one.name.find(type) != std::string::npos;
    });
  };
  const auto standard_plan = [](Framework framework, int capability) {
    return make_plan("standard", DeviceKind::kCuda, 100_GiB, CountingRunner(), framework,
                     capability);
  };
  EXPECT_TRUE(has(standard_plan(Framework::kOwn, 80), "amp-bf16"));
  const Plan turing = standard_plan(Framework::kOwn, 75);
  EXPECT_FALSE(has(turing, "amp-bf16"));
  EXPECT_TRUE(has(turing, "amp-fp16"));
  const Plan in_pytorch = standard_plan(Framework::kPytorch, 75);
  EXPECT_FALSE(has(in_pytorch, "amp-"));
  EXPECT_FALSE(has(in_pytorch, "bf16"));
  EXPECT_TRUE(has(in_pytorch, "fp32"));
}

TEST(PlanTest, SkipsJobsBeyondTheCeilingWithAReason) {
  const Plan plan = make_plan("quick", DeviceKind::kCpu, 100_MiB, CountingRunner());
  for (const Workload& workload : plan.workloads) EXPECT_LE(workload.forecast.reserved, 100_MiB);
  ASSERT_FALSE(plan.left_out.empty());
  EXPECT_THAT(plan.left_out.front().why, HasSubstr("beyond the ceiling of 100.00 MiB"));
}

TEST(PlanTest, SuggestsTheNearestPlan) {
  try {
    make_plan("quik", DeviceKind::kCpu, 1_GiB, CountingRunner());
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kUsage);
    EXPECT_THAT(error.what(), HasSubstr("did you mean \"quick\""));
  }
}

Workload using_libraries(bool cublas, bool cudnn, bool cufft) {
  Workload workload;
  workload.forecast.uses = {cublas, cudnn, cufft};
  return workload;
}

TEST(DesignTest, LibrariesUsedOneAtATimeHaveTheKnownCondition) {
  // Each library once, alone: the constant's unit column meets each of theirs at 1/2, so the Gram
  // matrix has the eigenvalues 1 + a, 1, 1, 1 - a with a = sqrt(3) / 2.
  const double condition =
      design_condition({using_libraries(true, false, false), using_libraries(false, true, false),
                        using_libraries(false, false, true), using_libraries(false, false, false)});
  const double a = std::sqrt(3.0) / 2;
  EXPECT_NEAR(condition, std::sqrt((1 + a) / (1 - a)), 1e-9);
}

TEST(DesignTest, CannotSeparateLibrariesAlwaysUsedTogether) {
  EXPECT_TRUE(std::isinf(
      design_condition({using_libraries(true, true, false), using_libraries(false, false, true),
                        using_libraries(false, false, false), using_libraries(true, true, true)})));
}

TEST(DesignTest, IgnoresValidationJobs) {
  Workload kept = using_libraries(true, true, true);
  kept.validation = true;
  EXPECT_TRUE(std::isinf(design_condition({kept})));
}

}  // namespace
}  // namespace memfathom

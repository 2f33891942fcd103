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
    for (const char* absent : {"neuralop", "flash", "\"fp16\""})
      EXPECT_EQ(workload.job.find(absent), std::string::npos) << workload.name;
  }
  const Plan quick =
      make_plan("quick", DeviceKind::kCuda, 100_GiB, CountingRunner(), Framework::kPytorch);
  EXPECT_EQ(quick.workloads.size(),
            make_plan("quick", DeviceKind::kCuda, 100_GiB, CountingRunner()).workloads.size());
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

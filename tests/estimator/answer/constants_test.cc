// The estimator adds the library constants as the predictor does, for every combination of
// libraries.
#include <gtest/gtest.h>

#include <set>

#include "core/coefficients.h"
#include "core/predictor.h"
#include "estimator/answer/estimate.h"
#include "estimator/answer/explain.h"
#include "estimator/run/replayed_job.h"
#include "tests/estimator/run_job.h"

namespace memfathom {
namespace {

constexpr std::int64_t kMiB = std::int64_t{1} << 20;

Job small_job() {
  return read_job(parse_json(R"({"model": )" + small_llama() +
                                 R"(, "training": {"batch_size": 2, "sequence_length": 64}})",
                             "job.json"));
}

// Every constant of the table set, each to a value that no sum of others has.
Calibration with_all_constants() {
  Calibration calibration;
  double value = 64.0 * kMiB;
  for (const LibraryConstant& constant : kLibraryConstants) {
    calibration.coefficients.push_back(
        {std::string(constant.name), value, 0.1 * value, "bytes", Source::kMeasured, false, 12});
    value *= 2;
  }
  return calibration;
}

void set_condition(ConstantCondition condition, bool holds, DryRun& run) {
  switch (condition) {
    case ConstantCondition::kAlways: break;
    case ConstantCondition::kUsesCublas: run.uses_cublas = holds; break;
    case ConstantCondition::kUsesCudnn: run.uses_cudnn = holds; break;
    case ConstantCondition::kUsesCufft: run.uses_cufft = holds; break;
  }
}

constexpr std::size_t kCombinations = std::size_t{1} << (kConstantCount - kAlwaysCount);

// The table's conditions in every combination.
std::vector<DryRun> runs_of_every_combination_of_libraries(const Job& job) {
  std::vector<DryRun> runs(kCombinations, run_dry(job, {}));
  for (std::size_t i = 0; i < runs.size(); ++i) {
    for (std::size_t row = kAlwaysCount; row < kConstantCount; ++row) {
      const bool holds = (i >> (row - kAlwaysCount) & 1) != 0;
      set_condition(kLibraryConstants[row].condition, holds, runs[i]);
    }
  }
  return runs;
}

TEST(ConstantsTest, TheReplayKnowsWhichConstantsTheRunPaysFor) {
  const std::vector<DryRun> runs = runs_of_every_combination_of_libraries(small_job());
  for (std::size_t i = 0; i < runs.size(); ++i) {
    for (std::size_t row = kAlwaysCount; row < kConstantCount; ++row) {
      EXPECT_EQ(applies_to(kLibraryConstants[row].condition, replayed(runs[i])),
                (i >> (row - kAlwaysCount) & 1) != 0)
          << kLibraryConstants[row].name;
    }
  }
}

TEST(ConstantsTest, TheEstimateIsThePredictionForEveryCombinationOfLibraries) {
  const Job job = small_job();
  const Calibration calibration = with_all_constants();
  const Constants constants = constants_of(calibration);
  EstimateContext context;
  context.calibration = &calibration;
  std::set<Bytes> distinct;
  for (const DryRun& run : runs_of_every_combination_of_libraries(job)) {
    const Estimate estimate = make_estimate(job, run, context);
    const Bytes predicted{
        static_cast<std::int64_t>(predict_device(replayed(run), constants.data()))};
    EXPECT_EQ(estimate.totals.device_peak, predicted);
    distinct.insert(predicted);
  }
  EXPECT_EQ(distinct.size(), kCombinations);
}

TEST(ConstantsTest, DefaultsAreAddedAsThePredictorAddsThem) {
  const Job job = small_job();
  const Constants constants = default_constants("pytorch");
  for (const DryRun& run : runs_of_every_combination_of_libraries(job)) {
    EXPECT_EQ(make_estimate(job, run, {}).totals.device_peak,
              Bytes{static_cast<std::int64_t>(predict_device(replayed(run), constants.data()))});
  }
}

TEST(ConstantsTest, EveryConstantThatAppliesHasALineWithItsComponentAndDescription) {
  const Job job = small_job();
  const Calibration calibration = with_all_constants();
  EstimateContext context;
  context.calibration = &calibration;
  for (const DryRun& run : runs_of_every_combination_of_libraries(job)) {
    const Estimate estimate = make_estimate(job, run, context);
    Bytes total;
    for (const ComponentLine& line : estimate.components) total += line.bytes;
    EXPECT_EQ(total, estimate.totals.device_peak) << "the lines add up to the total";
    for (const LibraryConstant& constant : kLibraryConstants) {
      const auto line = std::ranges::find(estimate.components, constant.name,
                                          [](const ComponentLine& l) { return l.coefficient; });
      ASSERT_EQ(line != estimate.components.end(), applies_to(constant.condition, replayed(run)))
          << constant.name;
      if (line == estimate.components.end()) continue;
      EXPECT_EQ(line->component, constant.component);
      EXPECT_EQ(describe_coefficient(constant.name), constant.description);
    }
  }
}

TEST(ConstantsTest, ARunWithoutTheCachingAllocatorPaysForNoConstant) {
  Job job = small_job();
  job.allocator.backend = Backend::kNone;
  const DryRun run = run_dry(job, {});
  EXPECT_EQ(make_estimate(job, run, {}).totals.device_peak, run.reserved_peak);
}

}  // namespace
}  // namespace memfathom

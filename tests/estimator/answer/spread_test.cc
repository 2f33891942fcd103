// Intervals and verdicts where no measured ratio speaks for the job, and where lengths vary.
#include <gtest/gtest.h>

#include <algorithm>

#include "estimator/answer/default_spread.h"
#include "estimator/answer/estimate.h"
#include "tests/estimator/run_job.h"

namespace memfathom {
namespace {

constexpr std::int64_t kGiB = std::int64_t{1} << 30;

Job small_job(const std::string& mode, const std::string& more = "") {
  return read_job(parse_json(
      R"({"model": )" + small_llama() + R"(, "training": {"mode": ")" + mode +
          R"(", "batch_size": 64, "sequence_length": 512, "precision": "bf16")" + more + "}}",
      "job.json"));
}

Estimate estimate(const Job& job, const Calibration* calibration, Bytes capacity) {
  EstimateContext context;
  context.calibration = calibration;
  context.capacity = capacity;
  return make_estimate(job, run_dry(job, {}), context);
}

// Ratios of inference alone, narrow.
Calibration of_inference() {
  Calibration calibration;
  calibration.coefficients.push_back(
      {"context", 1.4e9, 1e6, "bytes", Source::kPublished, false, 40});
  const std::vector<double> ratios(40, 1.0);
  calibration.ratios = {{"", ratios}, {"generation", {}}, {"inference", {}}, {"unseen", ratios}};
  return calibration;
}

TEST(SpreadTest, AStackNobodyMeasuredHasAnIntervalThatItsConstantsWiden) {
  const Estimate answer = estimate(small_job("train"), nullptr, Bytes{24 * kGiB});
  EXPECT_LT(answer.totals.device_low, answer.totals.device_peak - Bytes{kGiB / 2});
  EXPECT_GT(answer.totals.device_high, answer.totals.device_peak + Bytes{kGiB / 2});
  EXPECT_FALSE(answer.verdict.probability_fits);  // null without a calibration
}

TEST(SpreadTest, TheMemoryOfTheTargetEndsWhatItCanShowAndNotWhatDecides) {
  const Job job = small_job("train");
  const Totals wide = estimate(job, nullptr, Bytes{24 * kGiB}).totals;
  EXPECT_FALSE(wide.device_high_on_gpu);
  const Bytes between = wide.device_peak + Bytes{kGiB / 8};
  const Estimate ends = estimate(job, nullptr, between);
  EXPECT_EQ(ends.totals.device_high_on_gpu, between);
  EXPECT_EQ(ends.totals.device_high, wide.device_high);
  EXPECT_NE(ends.verdict.status, VerdictStatus::kFits);
  // A job that does not fit has no figure there.
  EXPECT_FALSE(estimate(job, nullptr, wide.device_peak - Bytes{1}).totals.device_high_on_gpu);
}

TEST(SpreadTest, RatiosOfInferenceSayNothingAboutTraining) {
  const Calibration calibration = of_inference();
  const Job training = small_job("train");
  const Job forward = small_job("inference");
  EXPECT_FALSE(ratios_apply_to(calibration, training, "transformer"));
  EXPECT_TRUE(ratios_apply_to(calibration, forward, "inference"));
  const Totals wide = estimate(training, &calibration, Bytes{24 * kGiB}).totals;
  const Totals narrow = estimate(forward, &calibration, Bytes{24 * kGiB}).totals;
  EXPECT_GT(wide.device_high, wide.device_peak);
  EXPECT_EQ(narrow.device_high, narrow.device_peak);
}

TEST(SpreadTest, OtherPeoplesRatiosSpeakForTheKindsOfJobsTheyRan) {
  Calibration calibration = of_inference();
  calibration.ratios[1] = {"convolution", {}};
  const Job training = small_job("train");
  EXPECT_TRUE(ratios_apply_to(calibration, training, "transformer"));  // a fit of one's own
  calibration.source = Source::kPublished;
  EXPECT_TRUE(ratios_apply_to(calibration, training, "convolution"));
  EXPECT_FALSE(ratios_apply_to(calibration, training, "transformer"));
  EXPECT_FALSE(ratios_apply_to(calibration, small_job("generate"), "generation"));
}

TEST(SpreadTest, OtherPeoplesRunsOfLanguageModelsSayNothingAboutPictures) {
  Calibration calibration = of_inference();
  calibration.source = Source::kPublished;
  const Job forward = small_job("inference");
  DryRun run;
  EXPECT_TRUE(ratios_apply_to(calibration, forward, job_group(forward, run)));
  run.uses_cudnn = run.asks_cudnn = true;
  EXPECT_FALSE(ratios_apply_to(calibration, forward, job_group(forward, run)));
}

TEST(SpreadTest, ProbabilityFallsWithGpuMemoryAndIsHalfAtTheEstimate) {
  DryRun run;
  run.reserved_peak = Bytes{10 * kGiB};
  const DefaultSpread spread(run, nullptr, Bytes{11 * kGiB});
  EXPECT_NEAR(spread.probability_fits(Bytes{11 * kGiB}), 0.5, 1e-9);
  const PredictionInterval interval = spread.interval(0.9);
  EXPECT_NEAR(spread.probability_fits(interval.high), 0.95, 0.001);
  EXPECT_NEAR(spread.probability_fits(interval.low), 0.05, 0.001);
  EXPECT_LT(spread.interval(0.5).high, interval.high);
}

TEST(SpreadTest, TheIntervalOfTheLargestTotalStaysANumberOfBytes) {
  DryRun run;
  run.reserved_peak = Bytes{9'000'000'000'000'000'000};
  const PredictionInterval interval = DefaultSpread(run, nullptr, run.reserved_peak).interval(0.9);
  EXPECT_GE(interval.high, run.reserved_peak);
  EXPECT_LT(interval.low, run.reserved_peak);
}

TEST(SpreadTest, FewRatiosPromiseTheLevelThatTheyCanReach) {
  Calibration calibration = of_inference();
  const auto level_of = [&](std::size_t ratios) {
    calibration.ratios = {{"", std::vector<double>(ratios, 1.0)}, {"inference", {}}};
    return estimate(small_job("inference"), &calibration, Bytes{24 * kGiB}).totals.interval;
  };
  EXPECT_DOUBLE_EQ(level_of(19), 0.9);
  EXPECT_DOUBLE_EQ(level_of(9), 0.8);
  EXPECT_DOUBLE_EQ(estimate(small_job("train"), nullptr, Bytes{24 * kGiB}).totals.interval, 0.9);
}

TEST(SpreadTest, TheDocumentedDefaultsTellAProbabilityToo) {
  Calibration defaults;  // as default/pytorch: of no GPU, without ratios for the job
  defaults.coefficients.push_back(
      {"context", 1.1e9, 5.6e8, "bytes", Source::kPublished, false, 360});
  const Estimate answer = estimate(small_job("train"), &defaults, Bytes{24 * kGiB});
  EXPECT_EQ(answer.calibration.status, CalibrationStatus::kNone);
  ASSERT_TRUE(answer.verdict.probability_fits);
  EXPECT_GT(*answer.verdict.probability_fits, 0.001);
}

TEST(SpreadTest, AHeavyTailOutsideTheAllocatorWidensTheUpperEndOnly) {
  Calibration stack;
  stack.source = Source::kPublished;
  stack.coefficients = {{"context", 5e8, 0, "bytes", Source::kPublished, false, 90},
                        {"framework", 0, 0, "bytes", Source::kPublished, false, 90},
                        {"interval.knee", 1e9, 0, "bytes", Source::kPublished, false, 90}};
  std::vector<double> ratios(90, 1.0);
  std::fill(ratios.begin() + 80, ratios.end(), 3.0);  // one in nine holds 2 GB more
  stack.ratios = {{"outside", ratios}};
  DryRun run;
  run.reserved_peak = Bytes{1 << 28};
  const Bytes peak = run.reserved_peak + Bytes{500'000'000};
  const DefaultSpread spread(run, &stack, peak);
  const PredictionInterval interval = spread.interval(0.9);
  EXPECT_GT(interval.low, peak - Bytes{1 << 26});
  EXPECT_GT(interval.high, peak + Bytes{2'000'000'000});
  EXPECT_NEAR(spread.probability_fits(peak + Bytes{1'000'000'000}), 80.0 / 90, 0.01);
  EXPECT_EQ(spread.parts().back().name, "outside");
}

TEST(SpreadTest, UnspecifiedLengthsWidenTheUpperEnd) {
  DryRun run;
  run.reserved_peak = Bytes{10 * kGiB};
  const PredictionInterval fixed = DefaultSpread(run, nullptr, Bytes{11 * kGiB}).interval(0.9);
  run.lengths_unspecified = true;
  const PredictionInterval open = DefaultSpread(run, nullptr, Bytes{11 * kGiB}).interval(0.9);
  EXPECT_EQ(open.low, fixed.low);
  EXPECT_GT(open.high, Bytes{18 * kGiB});
}

TEST(SpreadTest, EveryReasonForTheWidthHasAName) {
  const Estimate answer = estimate(small_job("train"), nullptr, Bytes{24 * kGiB});
  std::vector<std::string> names;
  for (const SpreadPart& part : answer.uncertainty) names.push_back(part.name);
  EXPECT_EQ(names, (std::vector<std::string>{"replay", "constants", "lengths"}));
}

TEST(SpreadTest, PerceptronsDoNotStandForTransformers) {
  const auto group = [](const std::string& layers) {
    const Job job = read_job(parse_json(
        R"({"model": {"input": {"shape": [16, 64]}, "layers": [)" + layers + "]}}", "job.json"));
    return job_group(job, DryRun());
  };
  EXPECT_EQ(group(R"({"type": "linear", "out": 8}, {"type": "relu"})"), "dense");
  EXPECT_EQ(group(R"({"type": "residual", "layers": [{"type": "linear", "out": 64}]})"), "dense");
  EXPECT_EQ(group(R"({"type": "transformer_block", "style": "torch", "hidden": 64, "heads": 4})"),
            "transformer");
  EXPECT_EQ(group(R"({"type": "residual", "layers": [{"type": "attention", "hidden": 64,
                   "heads": 4}]})"),
            "transformer");
}

TEST(SpreadTest, TwoReplaysThatDifferMakeTheIntervalWider) {
  DryRun run;
  run.reserved_peak = Bytes{10 * kGiB};
  const PredictionInterval sure = DefaultSpread(run, nullptr, Bytes{11 * kGiB}).interval(0.9);
  run.reserved_uncertainty = Bytes{2 * kGiB};
  const PredictionInterval unsure = DefaultSpread(run, nullptr, Bytes{11 * kGiB}).interval(0.9);
  EXPECT_LT(unsure.low, Bytes{9 * kGiB});
  EXPECT_GT(unsure.high, Bytes{13 * kGiB});
  EXPECT_LT(unsure.low, sure.low);
  EXPECT_GT(unsure.high, sure.high);
}

TEST(SpreadTest, WhatTheDriverKeepsIsNotAvailable) {
  const Estimate answer = estimate(small_job("train"), nullptr, Bytes{15 * kGiB});
  EXPECT_LT(*answer.verdict.available, Bytes{15 * kGiB - (320 << 20)});
  EXPECT_GT(*answer.verdict.available, Bytes{14 * kGiB});
}

TEST(SpreadTest, AWiderMarginTakesInWhatTheDriverKeeps) {
  Job job = small_job("train");
  job.target.margin_bytes = Bytes{4 * kGiB};
  EXPECT_EQ(*estimate(job, nullptr, Bytes{15 * kGiB}).verdict.available, Bytes{11 * kGiB});
}

TEST(SpreadTest, VaryingLengthsAreGuessedByTheirReplayWithAQuarterEitherSide) {
  const Totals fixed = estimate(small_job("train"), nullptr, Bytes{80 * kGiB}).totals;
  const Totals varying =
      estimate(small_job("train", R"(, "lengths": "varying")"), nullptr, Bytes{80 * kGiB}).totals;
  EXPECT_GT(varying.reserved_peak, fixed.reserved_peak);
  EXPECT_GE(varying.device_low, fixed.device_peak);
  EXPECT_GE(varying.device_high - varying.device_peak, Bytes{varying.reserved_peak.count() / 4});
}

TEST(SpreadTest, GpuMemoryBoundsVaryingLengthReservations) {
  const Job job = small_job("train", R"(, "lengths": "varying")");
  const Totals free = estimate(job, nullptr, Bytes{80 * kGiB}).totals;
  const Bytes small = free.device_peak - Bytes{64 << 20};
  const Estimate bounded = estimate(job, nullptr, small);
  EXPECT_LE(bounded.totals.device_peak, *bounded.verdict.available);
  EXPECT_EQ(bounded.verdict.status, VerdictStatus::kTight);
}

// A GPU on which the allocator has `room`, once the context and the driver have their parts.
Bytes gpu_with_room(Bytes room, const Totals& totals) {
  const Bytes outside = totals.device_peak - totals.reserved_peak;
  const std::int64_t rest = (room + outside).count() + (std::int64_t{320} << 20);
  return Bytes{rest + rest / 199 + 1};
}

TEST(CeilingTest, ARunEndsWhenItReservesMoreAndIsUntouchedBelow) {
  const Job job = small_job("train");
  const DryRun whole = run_dry(job, {});
  DryRunOptions options;
  options.ceiling = whole.reserved_peak;
  EXPECT_EQ(run_dry(job, options).reserved_peak, whole.reserved_peak);
  EXPECT_EQ(run_dry(job, options).allocated_peak, whole.allocated_peak);
  options.ceiling = whole.reserved_peak - Bytes{1};
  EXPECT_THROW(run_dry(job, options), OutOfMemory);
}

// The cache that varying lengths leave is bounded by the GPU, so it says nothing of a ceiling.
TEST(CeilingTest, VaryingLengthsAreJudgedByTheLongestAlone) {
  const Job job = small_job("train", R"(, "lengths": "varying")");
  const DryRun whole = run_dry(job, {});
  ASSERT_GT(whole.reserved_high, whole.reserved_peak);
  DryRunOptions options;
  options.ceiling = whole.reserved_peak;
  EXPECT_EQ(run_dry(job, options).reserved_high, whole.reserved_high);
}

TEST(FullGpuTest, TheCacheIsGivenBackWhereTheTensorsFitAndItDoesNot) {
  const Job job = small_job("train");
  const DryRun free = run_dry(job, {});
  EstimateContext context;
  context.capacity = Bytes{24 * kGiB};
  const Estimate wide = make_estimate(job, free, context);
  EXPECT_FALSE(memory_for_cache(job, wide, context)) << "there is room for all of it";

  context.capacity = gpu_with_room(free.reserved_peak - Bytes{kGiB / 512}, wide.totals);
  const std::optional<Bytes> room = memory_for_cache(job, wide, context);
  ASSERT_TRUE(room);
  DryRunOptions options;
  options.device_memory = room;
  const DryRun squeezed = run_dry(job, options);
  EXPECT_GT(squeezed.retries, 0);
  EXPECT_LE(squeezed.reserved_peak, *room);
  EXPECT_EQ(squeezed.allocated_peak.count(), free.allocated_peak.count());
  EXPECT_EQ(make_estimate(job, free, context).verdict.status, VerdictStatus::kDoesNotFit);
  context.wanted = wide.totals.device_peak;
  EXPECT_EQ(make_estimate(job, squeezed, context).verdict.status, VerdictStatus::kTight);

  context.capacity = gpu_with_room(free.allocated_peak - Bytes{kGiB / 8}, wide.totals);
  EXPECT_FALSE(memory_for_cache(job, wide, context)) << "the tensors alone do not fit";
}

}  // namespace
}  // namespace memfathom

#include <gtest/gtest.h>

#include <algorithm>

#include "core/error.h"
#include "tests/estimator/run_job.h"

namespace memfathom {
namespace {

DryRun run_with(const std::string& lengths, const std::string& allocator) {
  return run_job(
      R"({"model": )" + small_llama() +
      R"(, "training": {"batch_size": 64, "sequence_length": 512, "precision": "bf16", "lengths": ")" +
      lengths + R"("}, "allocator": {"options": ")" + allocator + R"("}})");
}

TEST(VaryingLengthsTest, ReserveMoreThanAFixedLengthAndAlwaysTheSame) {
  const DryRun fixed = run_with("fixed", "");
  const DryRun varying = run_with("varying", "");
  EXPECT_EQ(fixed.reserved_high.count(), 0);
  EXPECT_EQ(varying.reserved_peak.count(), fixed.reserved_peak.count());
  EXPECT_GT(varying.reserved_high, varying.reserved_peak);
  EXPECT_EQ(run_with("varying", "").reserved_high.count(), varying.reserved_high.count());
}

TEST(VaryingLengthsTest, ExpandableSegmentsRemoveMostOfIt) {
  const DryRun plain = run_with("varying", "");
  const DryRun expandable = run_with("varying", "expandable_segments:True");
  EXPECT_LT(expandable.reserved_high, plain.reserved_high);
}

TEST(VaryingLengthsTest, ThatLengthsWereTakenAsEqualIsSaidUnlessTheJobSaysIt) {
  const auto notes = [](const std::string& training, const std::string& allocator = "") {
    const DryRun run =
        run_job(R"({"model": )" + small_llama() +
                R"(, "training": {"batch_size": 2, "sequence_length": 64, "precision": "bf16")" +
                training + R"(}, "allocator": {"options": ")" + allocator + R"("}})");
    return std::count_if(
        run.assumptions.begin(), run.assumptions.end(),
        [](const std::string& note) { return note.starts_with("all sequences have 64 tokens"); });
  };
  EXPECT_EQ(notes(""), 1);
  EXPECT_EQ(notes(R"(, "lengths": "fixed")"), 0);
  EXPECT_EQ(notes(R"(, "lengths": "varying")"), 0);
  EXPECT_EQ(notes("", "expandable_segments:True"), 0);
  EXPECT_EQ(notes(R"(, "mode": "inference")"), 0);
}

DryRun run_evaluating(const std::string& evaluation) {
  return run_job(
      R"({"model": )" + small_llama() +
      R"(, "training": {"batch_size": 2, "sequence_length": 64, "precision": "bf16", "evaluation": )" +
      evaluation + "}}");
}

TEST(EvaluationTest, IsAPassWithoutAGraphBetweenIterations) {
  const DryRun run = run_evaluating("true");
  const std::int64_t peak = phase_peak(run, "evaluate");
  EXPECT_GT(peak, 0);
  EXPECT_LT(peak, phase_peak(run, "forward"));
  EXPECT_GT(in_phase(run, "evaluate", {Component::kOptimizerState}), 0);
  EXPECT_EQ(in_phase(run, "evaluate", {Component::kGradients}), 0);
  EXPECT_EQ(phase_peak(run_evaluating("false"), "evaluate"), 0);
}

TEST(EvaluationTest, OfALargeBatchMayBeThePeak) {
  const DryRun without = run_evaluating("false");
  const DryRun with = run_evaluating(R"({"batch_size": 256})");
  EXPECT_GT(with.allocated_peak, without.allocated_peak);
  EXPECT_EQ(with.allocated_peak.count(), phase_peak(with, "evaluate"));
  EXPECT_EQ(phase_peak(with, "forward"), phase_peak(without, "forward"));
}

TEST(NotModelledTest, NamesCompilationAndPagedOptimizers) {
  const DryRun run = run_job(
      R"({"model": )" + small_llama() +
      R"(, "training": {"sequence_length": 8, "compile": true, "optimizer": "paged_adamw_8bit"}})");
  ASSERT_EQ(run.not_modelled.size(), 2U);
  EXPECT_NE(run.not_modelled[0].find("torch.compile"), std::string::npos);
  EXPECT_NE(run.not_modelled[1].find("paged"), std::string::npos);
}

TEST(AdaptersTest, TargetsThatNameNothingAreRefused) {
  try {
    run_job(R"({"model": )" + small_llama() +
            R"(, "training": {"sequence_length": 8, "lora": {"rank": 4, "targets": ["c_attn"]}}})");
    FAIL() << "a job without anything that learns was answered";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("training.lora.targets"), std::string::npos);
  }
}

TEST(LoadPhaseTest, HoldsTheWeightsAndAShardAtOnce) {
  const auto load = [](const std::string& where) {
    const std::string model = small_llama();
    const DryRun run = run_job(
        R"({"model": )" + model.substr(0, model.size() - 1) +
        R"(, "load": {"shard": "1MB", "device": ")" + where +
        R"("}}, "training": {"mode": "inference", "sequence_length": 8, "precision": "fp16"}})");
    return run.phases.front();
  };
  const PhaseRecord host = load("cpu");
  const PhaseRecord gpu = load("cuda");
  ASSERT_EQ(gpu.name, "load");
  EXPECT_GT(gpu.allocated_peak, host.allocated_peak + 800000);
  EXPECT_LE(gpu.allocated_peak, host.allocated_peak + 1000000 + std::int64_t{64} * 512);
  EXPECT_EQ(gpu.allocated_end, host.allocated_end);
}

}  // namespace
}  // namespace memfathom

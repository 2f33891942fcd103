#include <gtest/gtest.h>

#include <string>

#include "core/error.h"
#include "tests/estimator/run_job.h"

namespace memfathom {
namespace {

DryRun run_with(const std::string& reference, const std::string& more = "") {
  return run_job(R"({"model": )" + small_llama() +
                 R"(, "training": {"batch_size": 2, "sequence_length": 128, "precision": "bf16")" +
                 more + R"(, "preference": {"method": "dpo", "reference": ")" + reference +
                 R"("}}})");
}

TEST(PreferenceTest, RunsTwoSequencesPerSample) {
  const DryRun run = run_with("none");
  const DryRun plain =
      run_job(R"({"model": )" + small_llama() +
              R"(, "training": {"batch_size": 4, "sequence_length": 128, "precision": "bf16"}})");
  const auto saved = [](const DryRun& r) {
    return in_phase(r, "forward", {Component::kActivations});
  };
  EXPECT_EQ(saved(run), saved(plain));
}

TEST(PreferenceTest, KeepsLogitsAndEveryRowsLogProbabilitiesButNoShiftedCopy) {
  const DryRun run = run_with("none");
  constexpr std::int64_t kLogits = std::int64_t{4} * 128 * 1000 * 2;
  constexpr std::int64_t kShifted = std::int64_t{4} * 127 * 1000 * 2;
  const std::int64_t seen = in_phase(run, "forward", {Component::kLogitsLoss});
  EXPECT_GE(seen, kLogits + kShifted);
  EXPECT_LT(seen, kLogits + 2 * kShifted);
}

TEST(PreferenceTest, AHundredMillionPairsAreRefusedInsteadOfListedRowByRow) {
  try {
    run_job(R"({"model": )" + small_llama() +
            R"(, "training": {"batch_size": 100000000, "sequence_length": 128, "precision": "bf16",
                "preference": "dpo"}})");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kInput);
    EXPECT_NE(std::string(error.what()).find("200000000 rows"), std::string::npos) << error.what();
  }
}

TEST(PreferenceTest, AReferenceModelAddsItsWeightsAndAPrecomputedOneNothing) {
  const auto parameters = [](const DryRun& run) { return at_peak(run, {Component::kParameters}); };
  const DryRun none = run_with("none");
  const DryRun precomputed = run_with("precomputed");
  const DryRun model = run_with("model");
  EXPECT_EQ(parameters(precomputed), parameters(none));
  EXPECT_EQ(parameters(model), 2 * parameters(none));
  EXPECT_EQ(model.trainable_count, none.trainable_count);
  EXPECT_EQ(model.parameter_count, none.parameter_count);
  EXPECT_GT(model.allocated_peak - none.allocated_peak, Bytes{2 * kSmallLlama})
      << "its forward runs while the policy's graph lives";
}

TEST(PreferenceTest, ADisabledAdapterNeedsNoSecondModelButAnAdapter) {
  const std::string lora = R"(, "lora": {"rank": 4, "targets": ["q_proj"], "precision": "bf16"})";
  const DryRun disabled = run_with("disabled-adapter", lora);
  const DryRun none = run_with("none", lora);
  EXPECT_EQ(at_peak(disabled, {Component::kParameters}), at_peak(none, {Component::kParameters}));
  EXPECT_GT(phase_peak(disabled, "forward"), phase_peak(none, "forward"));
  EXPECT_THROW(run_with("disabled-adapter"), Error);
}

}  // namespace
}  // namespace memfathom

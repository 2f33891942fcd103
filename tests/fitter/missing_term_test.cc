#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/fitter/simple_rows.h"
#include "tests/support/simulated_gpu.h"

namespace memfathom::testing {
namespace {

using ::testing::HasSubstr;

constexpr int kCards = 20 / MEMFATHOM_ONE_CARD_IN;

struct Told {
  int named = 0;  // the term at the head of the diagnosis is the planted one
  int widened_or_refused = 0;
  int context_covered = 0;
};

Told plant(const PlantedTerm& term, const std::string& name, const std::string& words) {
  Told told;
  for (std::uint64_t seed = 0; seed < kCards; ++seed) {
    const SimulatedGpu honest(seed);
    const SimulatedGpu lacking(seed, term);
    const Campaign before = profile(honest, 160, seed + 1000);
    const Campaign after = profile(lacking, 160, seed + 1000);
    const FitSummary reference = fit(before.rows, before.workspaces, simple_options());
    const FitSummary summary = fit(after.rows, after.workspaces, simple_options());
    if (!summary.diagnosis.missing.empty() &&
        summary.diagnosis.missing.front().coefficient == name) {
      ++told.named;
      EXPECT_THAT(summary.brief(), HasSubstr(words));
    }
    const double reference_error = coefficient(reference, "context").standard_error;
    const Coefficient& context = coefficient(summary, "context");
    const bool widened = context.standard_error > 1.5 * reference_error;
    told.widened_or_refused += widened || !summary.usable() ? 1 : 0;
    const double off = std::abs(context.value - lacking.truth().context);
    told.context_covered += off <= 1.96 * context.standard_error ? 1 : 0;
  }
  return told;
}

TEST(MissingTermTest, DiagnosesAProportionalLeakAndWidensTheErrors) {
  const Told told = plant({.leak_of_reserved = 0.08}, "theta.replay", "times the whole replay");
  EXPECT_GE(told.named, kCards * 9 / 10);
  EXPECT_GE(told.widened_or_refused, kCards * 9 / 10);
  EXPECT_GE(told.context_covered, kCards * 8 / 10);
}

TEST(MissingTermTest, DiagnosesAConstantPerLayerAndWidensTheErrors) {
  const Told told = plant({.bytes_per_layer = 8 * kMiB}, "theta.per_layer", "MiB per layer");
  EXPECT_GE(told.named, kCards * 9 / 10);
  EXPECT_GE(told.widened_or_refused, kCards * 9 / 10);
  EXPECT_GE(told.context_covered, kCards * 8 / 10);
}

}  // namespace
}  // namespace memfathom::testing

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.h"
#include "estimator/run/replayed_job.h"
#include "tests/estimator/run_job.h"

namespace memfathom {
namespace {

std::string training() {
  return R"("training": {"batch_size": 2, "sequence_length": 64, "precision": "bf16"})";
}

std::string job_of(const std::string& modules) {
  return R"({"model": {"modules": [)" + modules + "]}, " + training() + "}";
}

TEST(ModulesTest, OneModuleAloneIsThePlainModel) {
  const DryRun plain = run_job(R"({"model": )" + small_llama() + ", " + training() + "}");
  const DryRun module = run_job(job_of(R"({"name": "only", "model": )" + small_llama() + "}"));
  EXPECT_EQ(module.allocated_peak.count(), plain.allocated_peak.count());
  EXPECT_EQ(module.reserved_peak.count(), plain.reserved_peak.count());
  EXPECT_EQ(module.parameter_count, plain.parameter_count);
  EXPECT_THAT(module.modules, testing::ElementsAre("", "only"));
}

TEST(ModulesTest, KeepsEachModulesBytesApart) {
  const DryRun run =
      run_job(job_of(R"({"name": "teacher", "train": "frozen", "no_grad": true, "model": )" +
                     small_llama() + R"(}, {"name": "student", "model": )" + small_llama() + "}"));
  ASSERT_EQ(run.at_peak.size(), 3U);
  const auto bytes = [&](std::size_t module, Component c) {
    return run.at_peak[module][static_cast<std::size_t>(c)];
  };
  EXPECT_EQ(bytes(1, Component::kParameters), bytes(2, Component::kParameters));
  EXPECT_EQ(bytes(1, Component::kOptimizerState), 0);
  EXPECT_EQ(bytes(1, Component::kGradients), 0);
  EXPECT_EQ(bytes(1, Component::kActivations), 0)
      << "a module without gradients keeps nothing for backward";
  EXPECT_GT(bytes(1, Component::kLogitsLoss), 0) << "its output is an input of the other";
  EXPECT_GE(bytes(2, Component::kOptimizerState), 4 * kSmallLlama);
  EXPECT_EQ(run.parameter_count, 2 * kSmallLlama);
  EXPECT_EQ(run.trainable_count, kSmallLlama);
}

TEST(ModulesTest, OverridesTrainingKeysForOneModule) {
  const std::string modules =
      R"({"name": "wide", "train": "frozen", "no_grad": true, "precision": "fp32", "batch_size": 1, "model": )" +
      small_llama() + R"(}, {"name": "narrow", "model": )" + small_llama() + "}";
  const DryRun run = run_job(job_of(modules));
  const auto parameters = [&](std::size_t module) {
    return run.at_peak[module][static_cast<std::size_t>(Component::kParameters)];
  };
  EXPECT_NEAR(static_cast<double>(parameters(1)), 2.0 * static_cast<double>(parameters(2)),
              64 * 512);
}

TEST(ModulesTest, PutsABottleneckAfterEachBlock) {
  constexpr std::int64_t kRank = 8;
  const DryRun run = run_job(
      job_of(R"({"name": "adapted", "train": "adapter", "adapter": {"rank": 8}, "model": )" +
             small_llama() + "}"));
  EXPECT_EQ(run.trainable_count, 4 * (2 * kRank * 128 + kRank + 128));
  EXPECT_EQ(run.parameter_count, kSmallLlama + run.trainable_count);
}

TEST(ModulesTest, RefusesKeysOfTheSharedLoopAndModulesThatCannotLearn) {
  const auto message = [](const std::string& modules) -> std::string {
    try {
      run_job(job_of(modules));
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_THAT(message(R"({"optimizer": "sgd", "model": )" + small_llama() + "}"),
              testing::HasSubstr("loop that all modules share"));
  EXPECT_THAT(message(R"({"no_grad": true, "train": "full", "model": )" + small_llama() + "}"),
              testing::HasSubstr("cannot be trained"));
  for (const char* frozen : {R"("train": "frozen")", R"("train": "frozen", "no_grad": true)"}) {
    const std::string module = std::string("{") + frozen + R"(, "model": )" + small_llama() + "}";
    std::string two = module;
    two += ", ";
    two += module;
    for (const std::string& modules : {module, two})
      EXPECT_THAT(message(modules), testing::HasSubstr("no module in model.modules is trainable"));
  }
  EXPECT_THAT(message(R"({"train": "lora", "model": )" + small_llama() + "}"),
              testing::HasSubstr("training.lora"));
  EXPECT_THAT(
      message(
          R"({"train": "adapter", "adapter": {"rank": 4}, "model": {"layers": [{"type": "linear", "in": 4, "out": 4}], "input": {"shape": [4]}}})"),
      testing::HasSubstr("transformer block"));
}

// What a fit needs to notice a term per layer.
TEST(ReplayTest, CountsTheModulesThatOwnParameters) {
  const DryRun run = run_job(
      R"({"model": {"input": {"shape": [64]}, "layers": [{"type": "linear", "in": 64, "out": 32},)"
      R"( {"type": "layer_norm", "features": 32}, {"type": "relu"},)"
      R"( {"type": "repeat", "times": 3, "layers": [{"type": "linear", "in": 32, "out": 32}]}],)"
      R"( "loss": "mean"}, "training": {"batch_size": 4}})");
  EXPECT_EQ(replayed(run).layers, 5) << "two at first, three repeated; weight and bias are one";
}

}  // namespace
}  // namespace memfathom

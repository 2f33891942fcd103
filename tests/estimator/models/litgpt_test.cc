#include <fmt/format.h>
#include <gtest/gtest.h>

#include "core/error.h"
#include "estimator/run/stack_versions.h"
#include "tests/estimator/run_job.h"

namespace memfathom {
namespace {

DryRun run_with(const std::string& model, const std::string& training, const char* library) {
  Job job = read_job(parse_json(
      fmt::format(
          R"({{"model": {}, "training": {{{}}}, "target": {{"stack": {{"library": "{}"}}}}}})",
          model, training, library),
      "job.json"));
  DryRunOptions options;
  apply_stack(job, options.policy);
  return run_dry(job, options);
}

const char* const kTrain =
    R"("batch_size": 2, "sequence_length": 256, "precision": "bf16", "lora": {"rank": 4, "targets": ["q_proj", "v_proj"]})";

TEST(LitgptTest, HasTheParametersOfTheTransformersModel) {
  const DryRun own = run_with(small_llama(), kTrain, "litgpt");
  EXPECT_EQ(own.parameter_count - own.trainable_count, kSmallLlama);
  // q and v of rank 4 on one fused matrix: as many as on two, and of the model's type.
  EXPECT_EQ(own.trainable_count, 4 * (4 * 128 + 4 * 3 * 128));
  EXPECT_EQ(at_peak(own, {Component::kAdapterParameters}), 4 * 2 * (4 * 128 + 4 * 3 * 128));
}

TEST(LitgptTest, LogitsAreHandedOutInFp32AndTheirLossIsMadeInChunks) {
  constexpr std::int64_t kTokens = std::int64_t{2} * 256, kVocabulary = 1000;
  const DryRun own = run_with(small_llama(), kTrain, "litgpt");
  const auto logits = static_cast<double>(in_phase(own, "backward", {Component::kLogitsLoss}));
  // 4 bytes each for the logits and their logarithms, and a chunk's gradients.
  EXPECT_GT(logits, 8.0 * kTokens * kVocabulary);
  EXPECT_LT(logits, 12.5 * kTokens * kVocabulary);
}

TEST(LitgptTest, TheHeadIsQuantisedWithTheRest) {
  const std::string quantized = std::string(kTrain) + R"(, "quantization": "nf4")";
  const DryRun own = run_with(small_llama(), quantized, "litgpt");
  const DryRun usual = run_with(small_llama(), quantized, "transformers");
  const auto parameters = [](const DryRun& run) { return at_peak(run, {Component::kParameters}); };
  const double head = 128 * 1000;
  EXPECT_NEAR(static_cast<double>(parameters(usual) - parameters(own)), (2 - 0.5625) * head,
              0.02 * head);
}

TEST(LitgptTest, PhisActivationIsOneKernel) {
  const std::string phi =
      R"({"config": {"model_type": "phi", "hidden_size": 128, "intermediate_size": 512, "num_hidden_layers": 4,
          "num_attention_heads": 4, "vocab_size": 1000, "hidden_act": "gelu_new", "partial_rotary_factor": 0.5}})";
  const auto held = [&](const char* library) {
    return in_phase(run_with(phi, kTrain, library), "backward", {Component::kActivations});
  };
  EXPECT_LT(held("litgpt"), held("transformers"));
}

TEST(LitgptTest, GeneratesWithACacheOfAllPositions) {
  const DryRun run =
      run_with(small_llama(),
               R"("mode": "generate", "sequence_length": 6, "new_tokens": 10, "precision": "bf16")",
               "litgpt");
  EXPECT_GT(run.allocated_peak.count(), 2 * kSmallLlama);
}

TEST(LitgptTest, AFamilyItsConfigsDoNotHaveHereIsRefused) {
  const std::string bloom =
      R"({"config": {"model_type": "bloom", "hidden_size": 64, "n_head": 4, "n_layer": 2, "vocab_size": 100}})";
  EXPECT_THROW(run_with(bloom, kTrain, "litgpt"), Error);
}

}  // namespace
}  // namespace memfathom

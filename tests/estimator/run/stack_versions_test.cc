#include "estimator/run/stack_versions.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/estimator/run_job.h"

namespace memfathom {
namespace {

TEST(StackVersionsTest, PyTorchBeforeTwoAsksCudnnInTheOlderWayOnEveryCard) {
  EXPECT_TRUE(asks_older_cudnn("1.13.1", 86));
  EXPECT_TRUE(asks_older_cudnn("1.12.1", 70));
  EXPECT_FALSE(asks_older_cudnn("2.0.0", 86));
  EXPECT_FALSE(asks_older_cudnn("2.4.1", 70));
}

TEST(StackVersionsTest, AStackNobodyNamesIsOfTheTimeOfItsCard) {
  EXPECT_TRUE(asks_older_cudnn("", 70));
  EXPECT_FALSE(asks_older_cudnn("", 75));
  EXPECT_FALSE(asks_older_cudnn("", 80));
}

TEST(StackVersionsTest, ACardOlderThanTuringRunsAPyTorchOfItsTimeUnlessOneIsNamed) {
  EXPECT_EQ(torch_of("", 70), "1.10");
  EXPECT_EQ(torch_of("2.4.1", 70), "2.4.1");
  EXPECT_EQ(torch_of("", 80), "");
}

TEST(StackVersionsTest, BeforeTwoGradientsAreFilledWithZerosAndOptimizersGoOneByOne) {
  const auto after = [](const char* version, Job job = {}) {
    FrameworkPolicy policy = FrameworkPolicy::for_stack(version, 70);
    apply_stack(job, policy);
    return job.training;
  };
  EXPECT_EQ(after("1.13").zero_grad, ZeroGrad::kInPlace);
  EXPECT_EQ(after("1.13").optimizer.form, OptimizerForm::kForLoop);
  EXPECT_EQ(after("2.0").zero_grad, ZeroGrad::kAfterStep);
  EXPECT_EQ(after("2.0").optimizer.form, OptimizerForm::kForeach);
  Job said;
  said.training.zero_grad_given = true;
  said.training.optimizer_form_given = true;
  EXPECT_EQ(after("1.13", said).zero_grad, ZeroGrad::kAfterStep);
  EXPECT_EQ(after("1.13", said).optimizer.form, OptimizerForm::kForeach);
}

TEST(StackVersionsTest, SoftmaxKeptItsInputBeforePyTorch111) {
  EXPECT_TRUE(FrameworkPolicy::for_stack("1.10.2", 70).softmax_keeps_input);
  EXPECT_FALSE(FrameworkPolicy::for_stack("1.11", 70).softmax_keeps_input);
  EXPECT_FALSE(FrameworkPolicy::for_stack("", 70).softmax_keeps_input);
}

TEST(StackVersionsTest, BertOfAnOlderStackKeepsItsScoresToo) {
  constexpr std::int64_t kLayers = 3, kHeads = 4, kLength = 256, kBatch = 2;
  const auto backward = [](const char* version, const char* precision) {
    DryRunOptions options;
    options.policy = FrameworkPolicy::for_stack(version, 70);
    Job job = read_job(parse_json(
        fmt::format(
            R"({{"model": {{"config": {{"model_type": "bert", "hidden_size": 64, "num_attention_heads": 4,
                         "num_hidden_layers": 3, "intermediate_size": 64, "vocab_size": 100}}}},
             "training": {{"batch_size": 2, "sequence_length": 256, "precision": "{}", "attention": "eager", "optimizer": "none",
                          "zero_grad": "after_step"}}, "allocator": {{"backend": "none"}}}})",
            precision),
        "job.json"));
    apply_stack(job, options.policy);
    return phase_peak(run_dry(job, options), "forward");
  };
  // Under autocast the library's fp32 mask makes the scores fp32.
  const std::int64_t scores = kLayers * kBatch * kHeads * kLength * kLength * 4;
  const auto expect_scores_more = [&](const char* precision) {
    const auto more =
        static_cast<double>(backward("1.10", precision) - backward("1.11", precision));
    EXPECT_NEAR(more, static_cast<double>(scores), 0.1 * static_cast<double>(scores)) << precision;
  };
  expect_scores_more("fp32");
  expect_scores_more("amp-fp16");
}

TEST(StackVersionsTest, LibrariesOfNoGivenVersionAreOfTheTimeOfPyTorch) {
  FrameworkPolicy policy = FrameworkPolicy::for_stack("2.1.1", 80);
  Job job;
  apply_stack(job, policy);
  EXPECT_LT(job.training.settings.transformers_version, 436);
  EXPECT_TRUE(policy.bitsandbytes_keeps_input);
}

TEST(StackVersionsTest, BitsandbytesMayBeTodaysUnlessTheJobNamesIt) {
  FrameworkPolicy policy = FrameworkPolicy::for_stack("2.1.1", 80);
  Job job;
  apply_stack(job, policy, Bitsandbytes::kTodays);
  EXPECT_LT(job.training.settings.transformers_version, 436);
  EXPECT_FALSE(policy.bitsandbytes_keeps_input);
  job.target.stack.bitsandbytes = "0.41.1";
  apply_stack(job, policy, Bitsandbytes::kTodays);
  EXPECT_TRUE(policy.bitsandbytes_keeps_input);
}

}  // namespace
}  // namespace memfathom

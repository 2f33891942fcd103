#include "estimator/run/stack_versions.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/estimator/run_job.h"

namespace memfathom {
namespace {

TEST(StackVersionsTest, PyTorchBeforeTwoUsesTheOlderCudnnApi) {
  EXPECT_TRUE(uses_older_cudnn_api("1.13.1"));
  EXPECT_FALSE(uses_older_cudnn_api("2.0.0"));
  EXPECT_FALSE(uses_older_cudnn_api(""));
}

TEST(StackVersionsTest, UnrecordedPublishedRunsBeforeTuringHadAContemporaryPyTorch) {
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
  EXPECT_EQ(after("1.13").optimizer_options().form, OptimizerForm::kForLoop);
  EXPECT_EQ(after("2.0").zero_grad, std::nullopt);
  EXPECT_EQ(after("2.0").optimizer_options().form, OptimizerForm::kForeach);
  Job said;
  said.training.zero_grad = ZeroGrad::kAfterStep;
  said.training.optimizer_form = OptimizerForm::kForeach;
  EXPECT_EQ(after("1.13", said).zero_grad, ZeroGrad::kAfterStep);
  EXPECT_EQ(after("1.13", said).optimizer_options().form, OptimizerForm::kForeach);
}

// adafactor() of torch/optim/_adafactor.py takes the form over all parameters only if foreach is
// set.
TEST(StackVersionsTest, AdafactorLoopsOverTheParametersUnlessForeachIsAskedFor) {
  TrainingSpec training;
  training.optimizer.name = OptimizerName::kAdafactor;
  EXPECT_EQ(training.optimizer_options().form, OptimizerForm::kForLoop);
  training.optimizer_form = OptimizerForm::kForeach;
  EXPECT_EQ(training.optimizer_options().form, OptimizerForm::kForeach);
}

// training_args.py of transformers 4.53 and 4.54.
TEST(StackVersionsTest, TheTrainerFusesItsOptimizerFromTransformers454WithPyTorch28On) {
  const auto form = [](const char* torch, const char* transformers) {
    Job job;
    job.training.trainer_optimizer = true;
    job.target.stack.transformers = transformers;
    FrameworkPolicy policy = FrameworkPolicy::for_stack(torch, 80);
    apply_stack(job, policy);
    return job.training.optimizer_options().form;
  };
  EXPECT_EQ(form("", ""), OptimizerForm::kFused);
  EXPECT_EQ(form("2.8", "4.54.1"), OptimizerForm::kFused);
  EXPECT_EQ(form("2.8", "4.53.3"), OptimizerForm::kForeach);
  EXPECT_EQ(form("2.7", ""), OptimizerForm::kForeach);
}

TEST(StackVersionsTest, SoftmaxKeptItsInputBeforePyTorch111) {
  EXPECT_TRUE(FrameworkPolicy::for_stack("1.10.2", 70).softmax_keeps_input);
  EXPECT_FALSE(FrameworkPolicy::for_stack("1.11", 70).softmax_keeps_input);
  EXPECT_FALSE(FrameworkPolicy::for_stack("", 70).softmax_keeps_input);
}

// Its context holds cuDNN's modules then, which the fit's design must know.
TEST(StackVersionsTest, AttentionLoadsCudnnWherePyTorchPrefersIt) {
  const auto uses_cudnn = [](const char* version, int capability, const char* precision) {
    DryRunOptions options;
    options.policy = FrameworkPolicy::for_stack(version, capability);
    const Job job = read_job(parse_json(
        fmt::format(
            R"({{"model": {{"input": {{"shape": [32, 64]}}, "layers": [{{"type": "attention", "hidden": 64, "heads": 4}}],
                "loss": "mean"}}, "training": {{"precision": "{}", "batch_size": 2}}}})",
            precision),
        "job"));
    const DryRun run = run_dry(job, options);
    EXPECT_FALSE(run.asks_cudnn) << "it is no convolution";
    return run.uses_cudnn;
  };
  EXPECT_TRUE(uses_cudnn("2.11.0", 90, "amp-bf16"));
  EXPECT_TRUE(uses_cudnn("2.15.0", 103, "amp-bf16"));
  EXPECT_FALSE(uses_cudnn("2.10.0", 90, "amp-bf16")) << "it brings cuDNN 9.10";
  EXPECT_FALSE(uses_cudnn("2.15.0", 80, "amp-bf16"));
  EXPECT_FALSE(uses_cudnn("2.15.0", 120, "amp-bf16"));
  EXPECT_FALSE(uses_cudnn("", 90, "amp-bf16")) << "unspecified";
  EXPECT_FALSE(uses_cudnn("2.15.0", 90, "fp32")) << "the memory-efficient kernel";
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
  EXPECT_LT(job.training.settings.transformers.version(), (Version{4, 36}));
  EXPECT_TRUE(policy.bitsandbytes_keeps_input);
}

TEST(StackVersionsTest, BitsandbytesMayBeTodaysUnlessTheJobNamesIt) {
  FrameworkPolicy policy = FrameworkPolicy::for_stack("2.1.1", 80);
  Job job;
  apply_stack(job, policy, BitsandbytesRelease::kCurrent);
  EXPECT_LT(job.training.settings.transformers.version(), (Version{4, 36}));
  EXPECT_FALSE(policy.bitsandbytes_keeps_input);
  job.target.stack.bitsandbytes = "0.41.1";
  apply_stack(job, policy, BitsandbytesRelease::kCurrent);
  EXPECT_TRUE(policy.bitsandbytes_keeps_input);
}

TEST(StackVersionsTest, BitsandbytesIsHeldAgainstItsThirdNumberToo) {
  const auto with = [](const char* version) {
    FrameworkPolicy policy;
    Job job;
    job.target.stack.bitsandbytes = version;
    apply_stack(job, policy);
    return policy;
  };
  EXPECT_TRUE(with("0.42.0").bitsandbytes_quantizes_from_fp16);
  EXPECT_FALSE(with("0.43.0").bitsandbytes_quantizes_from_fp16);
  EXPECT_TRUE(with("0.43.1").bitsandbytes_keeps_input);
  EXPECT_FALSE(with("0.43.2").bitsandbytes_keeps_input);
  EXPECT_FALSE(with("0.43").bitsandbytes_keeps_input);  // the last of its line
  EXPECT_TRUE(with("0.44.1").bitsandbytes_tiles_int8);
  EXPECT_FALSE(with("0.45.0").bitsandbytes_tiles_int8);
}

// Adapters of rank 1 on a quantized model in bf16, without checkpoints.
DryRun run_quantized(const std::string& model, int tokens, const char* quantization,
                     const char* bitsandbytes) {
  Job job = read_job(
      parse_json(fmt::format(R"({{"model": {}, "training": {{"batch_size": 2, "sequence_length": {},
                      "precision": "bf16", "quantization": "{}", "lora": {{"rank": 1, "targets": ["q_proj"],
                      "precision": "bf16"}}}}, "target": {{"stack": {{"bitsandbytes": "{}"}}}}}})",
                             model, tokens, quantization, bitsandbytes),
                 "job.json"));
  DryRunOptions options;
  apply_stack(job, options.policy);
  return run_dry(job, options);
}

TEST(StackVersionsTest, Int8ProductsKeepTheirInputAndIn8BitsByColumnsBefore045) {
  constexpr std::int64_t kTokens = 512, kBlocks = 4;
  // The input of gate and up, and that of down; the adapters keep that of q, k and v anyway, and
  // the attention its output.
  constexpr std::int64_t kInputs = kBlocks * kTokens * (128 + 352);
  constexpr std::int64_t kProducts = kBlocks * kTokens * (6 * 128 + 352);
  const auto held = [](const char* quantization, const char* version) {
    return static_cast<double>(in_phase(run_quantized(small_llama(), 256, quantization, version),
                                        "backward", {Component::kActivations}));
  };
  const double four_bit = held("nf4", "0.49.0");
  const double today = held("int8", "0.49.0");
  const double older = held("int8", "0.44.0");
  EXPECT_NEAR(today - four_bit, 2 * kInputs, 0.02 * 2 * kInputs);
  EXPECT_NEAR(older - today, kProducts, 0.1 * kProducts);
}

TEST(StackVersionsTest, FourBitMatricesCameBackInFp16Before043) {
  const std::string wide =
      R"({"config": {"model_type": "llama", "hidden_size": 512, "intermediate_size": 8192, "num_hidden_layers": 2,
          "num_attention_heads": 4, "vocab_size": 16, "max_position_embeddings": 64}})";
  const auto peak = [&](const char* version) {
    return phase_peak(run_quantized(wide, 4, "nf4", version), "backward");
  };
  EXPECT_NEAR(static_cast<double>(peak("0.42.0") - peak("0.43.1")), 2 * 512 * 8192,
              0.05 * 2 * 512 * 8192);
}

}  // namespace
}  // namespace memfathom

#include "estimator/job/describe.h"

#include <gtest/gtest.h>

#include "estimator/job/read_job.h"

namespace memfathom {
namespace {

// Every path is a file with nothing in it.
class EmptyFiles final : public ModelFiles {
 public:
  Node config(const std::filesystem::path&) const override { return Node::map(); }
  Trace trace(const std::filesystem::path&, const TraceSizes&) const override { return {}; }
};

std::string line_of(const char* yaml) {
  const Node document = parse_yaml(yaml, "job.yaml");
  return describe(document, read_job(document, EmptyFiles()));
}

std::string unsaid_of(const char* yaml) {
  const Node document = parse_yaml(yaml, "job.yaml");
  return unspecified_settings(document, read_job(document, EmptyFiles()));
}

TEST(DescribeTest, SaysModelModeSamplePrecisionAndOptimizer) {
  EXPECT_EQ(line_of(R"(
model: {preset: llama-2-7b}
training: {batch_size: 4, sequence_length: 2048, precision: amp-bf16, optimizer: adamw-8bit,
           lora: {rank: 8}, gradient_checkpointing: full, quantization: nf4})"),
            "llama-2-7b, training: batch 4 of 2048 tokens, amp-bf16, nf4 weights, adamw-8bit, "
            "LoRA of rank 8, checkpointing");
}

TEST(DescribeTest, SaysHowTheJobIsSpread) {
  EXPECT_EQ(line_of(R"(
model: {parameters: 8.0e9}
training: {batch_size: 1, sequence_length: 512, precision: bf16, preference: {method: dpo}}
parallel: {num_gpus: 4, zero_stage: 3, offload: {optimizer: cpu, parameters: cpu}})"),
            "a model of 8 B parameters, training: batch 1 (pairs) of 512 tokens, bf16, adamw, DPO, "
            "4 GPUs, ZeRO-3, weights and optimizer on the host");
}

TEST(DescribeTest, NamesAFolderAndASnapshotOfTheHub) {
  const char* job = "model: {config: %s}\ntraining: {mode: inference, image_size: [64, 32]}\n";
  const auto with = [&](const std::string& path) {
    std::string text = job;
    text.replace(text.find("%s"), 2, path);
    return line_of(text.c_str());
  };
  const std::string rest = ", inference: batch 1 of 64 x 32, fp32";
  EXPECT_EQ(with("/models/My-Model/config.json"), "My-Model" + rest);
  EXPECT_EQ(with("/models/My-Model"), "My-Model" + rest);
  EXPECT_EQ(with("/hub/models--owner--Name-7b/snapshots/0123abc"), "owner/Name-7b" + rest);
  EXPECT_EQ(with("{model_type: fno, modes: [4, 4]}"), "fno" + rest);
}

TEST(DescribeTest, LetsNoControlCharacterThrough) {
  EXPECT_EQ(line_of("model: {config: {_name_or_path: \"a\\e[31mb\"}}\n").substr(0, 8), "a [31mb,");
}

TEST(DescribeTest, NamesWhatTheJobLeavesOpen) {
  EXPECT_EQ(unsaid_of("model: {preset: gpt2}\ntraining: {sequence_length: 8}\n"),
            "batch_size 1, precision fp32, optimizer adamw (not set in the job)");
  EXPECT_EQ(unsaid_of("model: {preset: resnet50}\ntraining: {mode: inference, batch_size: 2, "
                      "precision: fp16}\n"),
            "the model's default input size (not set in the job)");
  EXPECT_EQ(unsaid_of("model: {preset: gpt2}\ntraining: {sequence_length: 8, batch_size: 1, "
                      "precision: fp32, optimizer: sgd}\n"),
            "");
}

TEST(DescribeTest, AModuleMaySayItForItself) {
  EXPECT_EQ(unsaid_of(R"(
model: {modules: [{name: a, model: {preset: gpt2}, precision: fp16}]}
training: {batch_size: 1, sequence_length: 8, optimizer: adamw})"),
            "");
}

TEST(DescribeTest, ARecordedStepSaysEverythingItself) {
  EXPECT_EQ(line_of("model: {trace: step.jsonl}\n"), "a recorded step");
  EXPECT_EQ(unsaid_of("model: {trace: step.jsonl}\n"), "");
}

TEST(DescribeTest, ASettingUnderAKeyThatWasNotReadIsNotCalledUnsaid) {
  const Node document =
      parse_yaml("{model: {preset: gpt2}, training: {sequence_length: 8}}", "job.yaml");
  const std::string sentence =
      unspecified_settings(document, read_job(document, EmptyFiles()),
                           {{"x.yaml", "train_batchsize", "batch", "train_batch_size"}});
  EXPECT_EQ(sentence,
            "batch_size 1 (train_batchsize was not read), precision fp32, optimizer adamw (not set "
            "in the job)");
}

}  // namespace
}  // namespace memfathom

// The figures of docs/from-your-script.md's last table that a model decides.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "estimator/job/read_job.h"
#include "estimator/run/dry_run.h"

namespace memfathom {
namespace {

DryRun run_text(const std::string& yaml) {
  return run_dry(read_job(parse_yaml(yaml, "job.yaml")), {});
}

std::int64_t parameter_bytes(const DryRun& run) {
  std::int64_t bytes = 0;
  for (const ComponentBytes& module : run.at_peak)
    bytes += module[static_cast<std::size_t>(Component::kParameters)];
  return bytes;
}

TEST(DocumentFactsTest, AnAdapterOfARankHasTwoMatricesAndTwoBiasesInEachOf42BlocksOfWidth3072) {
  for (const std::int64_t rank : {64, 128, 256}) {
    const DryRun run = run_text(
        fmt::format("model: {{preset: cogvideox-5b, train: adapter, adapter: {{rank: {}}}}}\n"
                    "training: {{batch_size: 1, num_frames: 9, image_size: 64, precision: fp16}}",
                    rank));
    EXPECT_EQ(run.trainable_count, 42 * (2 * rank * 3072 + rank + 3072)) << rank;
  }
}

TEST(DocumentFactsTest, WeightsTakeTwoBytesAParameterInFp16AndFourInFp32) {
  const std::string job =
      "model: {{preset: cogvideox-5b}}\ntraining: {{mode: inference, batch_size: 1, num_frames: 9, "
      "image_size: 64, precision: {}}}";
  const DryRun half = run_text(fmt::format(fmt::runtime(job), "fp16"));
  const DryRun full = run_text(fmt::format(fmt::runtime(job), "fp32"));
  EXPECT_EQ(half.parameter_count, 5570283072);
  // Each tensor is rounded up to 512 bytes.
  EXPECT_NEAR(static_cast<double>(parameter_bytes(half)), 2.0 * 5570283072, 2e6);
  EXPECT_NEAR(static_cast<double>(parameter_bytes(full)), 4.0 * 5570283072, 2e6);
}

TEST(DocumentFactsTest, TheTextEncoderOfCogVideoXHasBillionsOfParametersNot220Million) {
  const DryRun run = run_text(
      "model: {config: {model_type: t5, architectures: [T5EncoderModel], d_model: 4096, d_ff: "
      "10240, d_kv: 64, num_layers: 24, num_heads: 64, "
      "vocab_size: 32128, feed_forward_proj: gated-gelu}}\ntraining: {mode: inference, batch_size: "
      "1, sequence_length: 16, precision: fp16}");
  EXPECT_NEAR(static_cast<double>(run.parameter_count), 4.76e9, 0.01e9);
}

}  // namespace
}  // namespace memfathom

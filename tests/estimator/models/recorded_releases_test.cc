// Older releases of transformers keep tables of positions in every layer, each family until its own
// release. Recorded from 4.40.2 and 4.46.3 on the CPU with PyTorch 2.15, eager attention and AdamW:
// the highest live bytes of the second iteration's phases.
#include <gtest/gtest.h>

#include <string>

#include "tests/estimator/models/recorded_step.h"

namespace memfathom {
namespace {

struct Release {
  const char* type;
  Version version;    // of transformers
  const char* extra;  // of the config
  std::int64_t forward, backward, step, parameters;
};

// All tokens go to both experts, so that the recorded figures do not depend on the router's
// weights.
constexpr Release kReleases[] = {
    {"llama", {4, 40}, "", 34273280, 34263040, 32901120, 1564992},
    {"mistral", {4, 40}, "", 34273280, 34263040, 32901120, 1564992},
    {"qwen2", {4, 40}, "", 34296320, 34286080, 32936448, 1565952},
    {"gemma", {4, 40}, R"("head_dim": 32, )", 30403584, 30393344, 27487744, 1372992},
    {"olmo", {4, 40}, "", 33180160, 33169920, 32861696, 1563648},
    {"starcoder2", {4, 40}, "", 24992256, 24982016, 23301632, 1083072},
    {"stablelm", {4, 40}, "", 31995392, 31985152, 31760896, 1566336},
    {"cohere", {4, 40}, "", 29614080, 29603840, 27470848, 1372416},
    {"llama", {4, 46}, "", 32649728, 32639488, 31328768, 1564992},
    {"mistral", {4, 46}, "", 32700416, 32690176, 31328256, 1564992},
    {"mixtral",
     {4, 46},
     R"("num_local_experts": 2, "num_experts_per_tok": 2, )",
     52643840,
     52633600,
     50625024,
     2450880},
    // 4.48.3, recorded by memfathom.torch: torch.max keeps the scores, _shape() copies heads.
    {"opt",
     {4, 48},
     R"("ffn_dim": 512, "word_embed_proj_dim": 192, "dropout": 0.1, )",
     30264832,
     30254592,
     32539136,
     1624896},
};

class RecordedReleasesTest : public ::testing::TestWithParam<Release> {};

TEST_P(RecordedReleasesTest, AllocatesWhatItAllocated) {
  const Release& release = GetParam();
  Job job = read_job(parse_json(
      std::string(R"({"model": {"config": {"model_type": ")") + release.type + R"(", )" +
          release.extra +
          R"("vocab_size": 1000, "hidden_size": 192, "intermediate_size": 512, "num_hidden_layers": 3,
             "num_attention_heads": 6, "num_key_value_heads": 2, "max_position_embeddings": 2048}},
             "training": {"batch_size": 2, "sequence_length": 100, "precision": "fp32", "attention": "eager",
             "optimizer": {"name": "adamw", "implementation": "foreach"}},
             "allocator": {"backend": "none"}, "target": {"gpu": "a100-80gb"}})",
      "job.json"));
  job.training.settings.transformers = TransformersPolicy(release.version);
  DryRunOptions options;
  options.policy = FrameworkPolicy::for_stack("2.15", 80);
  const DryRun run = run_dry(job, options);
  EXPECT_EQ(run.parameter_count, release.parameters);
  expect_recorded(peak_of(run, "forward"), release.forward, "forward");
  expect_recorded(peak_of(run, "backward"), release.backward, "backward");
  expect_recorded(peak_of(run, "step"), release.step, "step");
}

INSTANTIATE_TEST_SUITE_P(Releases, RecordedReleasesTest, ::testing::ValuesIn(kReleases),
                         [](const ::testing::TestParamInfo<Release>& tested) {
                           const Version& version = tested.param.version;
                           return std::string(tested.param.type) + std::to_string(version.major) +
                                  std::to_string(version.minor);
                         });

}  // namespace
}  // namespace memfathom

// Blocks alike that are played against blocks that all run: nothing may tell the runs apart.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "estimator/run/stack_versions.h"
#include "kernels/devices/dry/dry_device.h"
#include "kernels/framework/tensor/segment_replay.h"
#include "kernels/memory/allocator/caching_allocator.h"
#include "tests/estimator/run_job.h"

namespace memfathom {
namespace {

struct Outcome {
  std::vector<std::string> memory;  // every segment and block and the statistics, after each stage
  DryRun run;
};

Outcome outcome(const Job& job, bool replays) {
  DryDevice device;
  CachingAllocator allocator(device.memory());
  Session session(device, allocator, device.workspaces(), FrameworkPolicy{});
  Outcome result;
  const ReplayScope scope(replays);
  result.run = run_in(session, job, [&](std::string_view) {
    result.memory.push_back(to_json(allocator.snapshot()));
  });
  return result;
}

void expect_the_same(const std::string& model, const std::string& training) {
  const Job job =
      read_job(parse_json(R"({"model": )" + model + R"(, "training": {)" + training + "}}", "job"));
  const std::string which = model + training;
  Outcome played;
  try {
    played = outcome(job, true);
  } catch (const SegmentsDiffer&) {
    // Such a run is made again with every block: right, but without a gain.
    EXPECT_NE(model.find("bloom"), std::string::npos) << which;
    EXPECT_NE(training.find("gradient_checkpointing"), std::string::npos) << which;
    return;
  }
  const Outcome run = outcome(job, false);
  EXPECT_EQ(played.memory, run.memory) << which;
  EXPECT_EQ(played.run.reserved_peak, run.run.reserved_peak) << which;
  ASSERT_EQ(played.run.phases.size(), run.run.phases.size()) << which;
  for (std::size_t i = 0; i < run.run.phases.size(); ++i) {
    const PhaseRecord& a = played.run.phases[i];
    const PhaseRecord& b = run.run.phases[i];
    EXPECT_EQ(a.name, b.name) << which;
    EXPECT_EQ(a.allocated_peak, b.allocated_peak) << a.name << a.iteration << which;
    EXPECT_EQ(a.allocated_end, b.allocated_end) << a.name << a.iteration << which;
    EXPECT_EQ(a.reserved_peak, b.reserved_peak) << a.name << a.iteration << which;
    EXPECT_EQ(a.live_at_peak, b.live_at_peak) << a.name << a.iteration << which;
  }
}

std::string model(const std::string& type, const std::string& more = "") {
  return fmt::format(
      R"({{"config": {{"model_type": "{}", "hidden_size": 128, "intermediate_size": 352, "num_hidden_layers": 7,
          "num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 1000, "max_position_embeddings": 512,
          "head_dim": 32, "tie_word_embeddings": false{}}}}})",
      type, more);
}

// Blocks of one kind, of two that alternate, experts, and experts after dense blocks.
std::vector<std::string> models() {
  const std::string experts =
      R"(, "num_experts": 8, "num_experts_per_tok": 2, "moe_intermediate_size": 64)";
  return {
      model("llama"),
      model("mistral", R"(, "sliding_window": 20)"),
      model("gemma2", R"(, "sliding_window": 20, "query_pre_attn_scalar": 32)"),
      model(
          "falcon",
          R"(, "n_head": 4, "n_layer": 7, "new_decoder_architecture": false, "multi_query": true)"),
      model("gpt_neox"),
      model("bloom", R"(, "n_head": 4, "n_layer": 7)"),
      model("qwen3_moe", experts),
      model(
          "deepseek_v3",
          R"(, "n_routed_experts": 8, "num_experts_per_tok": 2, "moe_intermediate_size": 64, "n_shared_experts": 1,
               "first_k_dense_replace": 2, "kv_lora_rank": 32, "q_lora_rank": 48, "qk_nope_head_dim": 16,
               "qk_rope_head_dim": 8, "v_head_dim": 16, "n_group": 1, "topk_group": 1)"),
  };
}

constexpr const char* kShape = R"("batch_size": 2, "sequence_length": 48)";

class BlockReplayTest : public testing::TestWithParam<std::string> {};

TEST_P(BlockReplayTest, IsTheSameAsRunningEveryBlock) {
  for (const std::string& model : models()) expect_the_same(model, kShape + GetParam());
}

INSTANTIATE_TEST_SUITE_P(
    Training, BlockReplayTest,
    testing::Values(
        "", R"(, "precision": "bf16")", R"(, "precision": "amp-bf16")",
        R"(, "precision": "amp-fp16", "gradient_checkpointing": "full")",
        R"(, "precision": "bf16", "gradient_checkpointing": "full")",
        R"(, "precision": "bf16", "gradient_checkpointing": "full", "checkpoint_reentrant": true)",
        R"(, "precision": "bf16", "gradient_checkpointing": "selective")",
        R"(, "precision": "bf16", "attention": "eager")",
        R"(, "precision": "bf16", "use_cache": true)",
        R"(, "precision": "bf16", "gradient_accumulation_steps": 3, "gradient_clipping": true)",
        R"(, "precision": "bf16", "optimizer": "adafactor", "evaluation": {"batch_size": 3})",
        R"(, "precision": "bf16", "lora": {"rank": 4, "targets": "all-linear"})",
        R"(, "precision": "bf16", "lora": {"rank": 4, "targets": "all-linear"}, "gradient_checkpointing": "full")",
        R"(, "precision": "bf16", "lora": {"rank": 4, "targets": "all-linear"}, "quantization": "nf4")",
        R"(, "precision": "bf16", "lora": {"rank": 4, "targets": ["q_proj", "q_b_proj", "v_proj"]}, "quantization": "int8")",
        R"(, "precision": "bf16", "preference": "dpo")",
        R"(, "precision": "bf16", "samples_per_epoch": 5)"));

INSTANTIATE_TEST_SUITE_P(
    Inference, BlockReplayTest,
    testing::Values(
        R"(, "precision": "bf16", "mode": "inference")",
        R"(, "precision": "fp16", "mode": "inference", "quantization": "int8")",
        R"(, "precision": "bf16", "mode": "generate", "new_tokens": 30)",
        R"(, "precision": "bf16", "mode": "generate", "new_tokens": 9, "attention": "eager")",
        R"(, "precision": "bf16", "mode": "generate", "new_tokens": 9, "kv_cache": "static")",
        R"(, "precision": "bf16", "mode": "generate", "new_tokens": 9, "kv_cache": "tuple")",
        R"(, "precision": "bf16", "mode": "generate", "new_tokens": 5000)",
        R"(, "precision": "bf16", "mode": "generate", "new_tokens": 9, "quantization": "nf4")"));

}  // namespace
}  // namespace memfathom

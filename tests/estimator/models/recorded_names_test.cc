// Cases recorded from PyTorch 2.15 where a name in the model's own script decides how long a tensor
// lives. scripts/record-steps.py made the figures from the jobs below, on fake tensors of the CPU
// device, and makes them again.
#include <gtest/gtest.h>

#include <string>

#include "estimator/job/read_job.h"
#include "estimator/run/dry_run.h"

namespace memfathom {
namespace {

double highest(const char* job, const std::string& phase) {
  DryRunOptions options;
  options.policy = FrameworkPolicy::for_stack("2.15", 80);
  const DryRun run = run_dry(read_job(parse_json(job, "job.json")), options);
  for (const PhaseRecord& record : run.phases) {
    if (record.iteration == 2 && record.name == phase)
      return static_cast<double>(record.allocated_peak);
  }
  return 0;
}

// Under autocast the projection saves a copy of its input; the input itself is `x` in the forward
// of the whole network.
TEST(RecordedNamesTest, TheInputOfAFourierOperatorsProjectionLivesUntilItReturns) {
  const char* const job =
      R"({"model": {"input": {"shape": [32, 128, 128], "dtype": "fp32"}, "layers": [
          {"type": "repeat", "times": 3, "layers": [{"type": "fno_block", "style": "classic", "width": 32, "modes": [4, 4]}]},
          {"type": "conv2d", "in": 32, "out": 128, "kernel": 1}, {"type": "gelu"}, {"type": "conv2d", "in": 128, "out": 3, "kernel": 1}],
          "loss": "mse"}, "training": {"mode": "train", "batch_size": 2, "precision": "amp-bf16",
          "optimizer": {"name": "sgd-momentum", "implementation": "foreach"}}, "allocator": {"backend": "none"},
          "target": {"gpu": "a100-80gb"}})";
  EXPECT_NEAR(highest(job, "forward"), 56821760, 0.005 * 56821760);
  EXPECT_NEAR(highest(job, "backward"), 61015552, 0.005 * 61015552);
}

// attn_weights = softmax(attn_weights); attn_weights = attn_weights.type(value.dtype)
TEST(RecordedNamesTest, Gpt2sScoresAreGoneWhenTheirSoftmaxIsCast) {
  const char* const job =
      R"({"model": {"config": {"model_type": "gpt2", "vocab_size": 32000, "n_positions": 1024, "n_embd": 768, "n_layer": 6,
          "n_head": 12, "n_inner": 2048}}, "training": {"mode": "generate", "batch_size": 2, "precision": "amp-fp16",
          "attention": "eager", "sequence_length": 512, "new_tokens": 2}, "allocator": {"backend": "none"},
          "target": {"gpu": "a100-80gb"}})";
  EXPECT_NEAR(highest(job, "prefill"), 379488256, 0.005 * 379488256);
}

// The hook that makes inputs of checkpoints require gradients sees what the embedding returns: the
// graph holds that leaf beside its product with Granite's multiplier.
TEST(RecordedNamesTest, GranitesEmbeddingLivesBesideItsProductUnderCheckpointsOfAdapters) {
  const char* const job =
      R"({"model": {"config": {"model_type": "granite", "vocab_size": 5003, "hidden_size": 512, "intermediate_size": 1024,
          "num_hidden_layers": 3, "num_attention_heads": 8, "num_key_value_heads": 2, "attention_multiplier": 0.0078,
          "residual_multiplier": 0.22, "embedding_multiplier": 12.0, "logits_scaling": 8.0, "tie_word_embeddings": false}},
          "training": {"mode": "train", "batch_size": 2, "sequence_length": 256, "precision": "bf16", "attention": "sdpa",
          "optimizer": {"name": "adamw", "implementation": "fused"}, "gradient_checkpointing": "full",
          "lora": {"rank": 8, "targets": ["q_proj", "v_proj"], "dropout": 0.0, "precision": "bf16"}},
          "allocator": {"backend": "none"}, "target": {"gpu": "a100-80gb"}})";
  EXPECT_NEAR(highest(job, "forward"), 54293504, 0.002 * 54293504);
  EXPECT_NEAR(highest(job, "backward"), 57834496, 0.002 * 57834496);
}

}  // namespace
}  // namespace memfathom

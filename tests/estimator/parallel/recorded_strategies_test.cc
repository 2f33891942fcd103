// Steps recorded from PyTorch 2.15's FSDP and DeepSpeed 0.19's ZeRO. scripts/record-steps.py made
// the figures from the jobs below, on fake tensors of the CPU device with PyTorch's fake process
// group (ZeRO: the last rank's, FSDP: the first's), and makes them again.
#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "estimator/job/read_job.h"
#include "estimator/run/dry_run.h"
#include "tests/estimator/run_job.h"

namespace memfathom {
namespace {

struct Recorded {
  const char* what;
  const char* job;
  std::int64_t forward, backward, step;  // highest live bytes of the second iteration
};

// clang-format off
const Recorded kRecorded[] = {
    {"ZeRO-1 reduces after backward, by way of a bucket",
     R"({"model": {"config": {"model_type": "llama", "vocab_size": 8000, "hidden_size": 256, "intermediate_size": 512,
        "num_hidden_layers": 5, "num_attention_heads": 4, "num_key_value_heads": 4, "hidden_act": "silu",
        "tie_word_embeddings": false, "attention_bias": false, "mlp_bias": false, "head_dim": 64}}, "training": {"mode":
        "train", "batch_size": 4, "sequence_length": 64, "precision": "bf16", "attention": "sdpa", "optimizer": {"name":
        "adamw", "implementation": "fused"}, "gradient_checkpointing": "none", "gradient_accumulation_steps": 1},
        "parallel": {"num_gpus": 8, "zero_stage": 1, "zero": {"reduce_bucket_size": 3000000, "allgather_bucket_size":
        3000000, "overlap_comm": false}}, "allocator": {"backend": "none"}, "target": {"gpu": "a100-80gb"}})",
     59992064, 64083968, 37294080},
    {"ZeRO-1 accumulates whole gradients",
     R"({"model": {"config": {"model_type": "llama", "vocab_size": 1003, "hidden_size": 512, "intermediate_size": 1360,
        "num_hidden_layers": 8, "num_attention_heads": 8, "num_key_value_heads": 2, "hidden_act": "silu",
        "tie_word_embeddings": false, "attention_bias": false, "mlp_bias": false, "head_dim": 64}}, "training": {"mode":
        "train", "batch_size": 2, "sequence_length": 512, "precision": "bf16", "attention": "sdpa", "optimizer":
        {"name": "adamw", "implementation": "fused"}, "gradient_checkpointing": "none", "gradient_accumulation_steps":
        2}, "parallel": {"num_gpus": 8, "zero_stage": 1, "zero": {"reduce_bucket_size": 1000000,
        "allgather_bucket_size": 1000000, "overlap_comm": false}}, "allocator": {"backend": "none"}, "target": {"gpu":
        "a100-80gb"}})",
     320630272, 322668032, 103593472},
    {"ZeRO-2 joins the bucket once more to reduce it",
     R"({"model": {"config": {"model_type": "llama", "vocab_size": 32000, "hidden_size": 512, "intermediate_size": 2048,
        "num_hidden_layers": 5, "num_attention_heads": 8, "num_key_value_heads": 8, "hidden_act": "silu",
        "tie_word_embeddings": false, "attention_bias": false, "mlp_bias": false, "head_dim": 64}}, "training": {"mode":
        "train", "batch_size": 2, "sequence_length": 512, "precision": "bf16", "attention": "sdpa", "optimizer":
        {"name": "adamw", "implementation": "fused"}, "gradient_checkpointing": "none", "gradient_accumulation_steps":
        1}, "parallel": {"num_gpus": 8, "zero_stage": 2, "zero": {"reduce_bucket_size": 1000000,
        "allgather_bucket_size": 1000000, "overlap_comm": false}}, "allocator": {"backend": "none"}, "target": {"gpu":
        "a100-80gb"}})",
     667165696, 732685312, 274641408},
    {"ZeRO-2 with overlap and two micro-batches",
     R"({"model": {"config": {"model_type": "gpt2", "vocab_size": 8000, "n_positions": 1024, "n_embd": 1024, "n_layer":
        5, "n_head": 8, "n_inner": 2048, "activation_function": "gelu_new", "resid_pdrop": 0.1, "embd_pdrop": 0.1,
        "attn_pdrop": 0.1, "tie_word_embeddings": true}}, "training": {"mode": "train", "batch_size": 1,
        "sequence_length": 64, "precision": "bf16", "attention": "sdpa", "optimizer": {"name": "adamw",
        "implementation": "fused"}, "gradient_checkpointing": "full", "gradient_accumulation_steps": 2}, "parallel":
        {"num_gpus": 8, "zero_stage": 2, "zero": {"reduce_bucket_size": 3000000, "allgather_bucket_size": 3000000,
        "overlap_comm": true}}, "allocator": {"backend": "none"}, "target": {"gpu": "a100-80gb"}})",
     202255872, 274102784, 234582016},
    {"ZeRO-3 keeps more than max_live_parameters where all is used again soon",
     R"({"model": {"config": {"model_type": "llama", "vocab_size": 1003, "hidden_size": 512, "intermediate_size": 1024,
        "num_hidden_layers": 8, "num_attention_heads": 4, "num_key_value_heads": 4, "hidden_act": "silu",
        "tie_word_embeddings": false, "attention_bias": false, "mlp_bias": false, "head_dim": 128}}, "training":
        {"mode": "train", "batch_size": 2, "sequence_length": 128, "precision": "bf16", "attention": "sdpa",
        "optimizer": {"name": "adamw", "implementation": "fused"}, "gradient_checkpointing": "none",
        "gradient_accumulation_steps": 1}, "parallel": {"num_gpus": 8, "zero_stage": 3, "zero": {"reduce_bucket_size":
        3000000, "prefetch_bucket_size": 2000000, "max_live_parameters": 5000000}}, "allocator": {"backend": "none"},
        "target": {"gpu": "a100-80gb"}})",
     139726336, 140235776, 66530304},
    {"ZeRO-3 keeps what is used again soon",
     R"({"model": {"config": {"model_type": "qwen2", "vocab_size": 1003, "hidden_size": 1024, "intermediate_size": 2048,
        "num_hidden_layers": 8, "num_attention_heads": 8, "num_key_value_heads": 2, "hidden_act": "silu",
        "tie_word_embeddings": true}}, "training": {"mode": "train", "batch_size": 4, "sequence_length": 128,
        "precision": "bf16", "attention": "sdpa", "optimizer": {"name": "adamw", "implementation": "fused"},
        "gradient_checkpointing": "none", "gradient_accumulation_steps": 1}, "parallel": {"num_gpus": 8, "zero_stage":
        3, "zero": {"reduce_bucket_size": 3000000, "prefetch_bucket_size": 50000000, "max_live_parameters":
        1000000000}}, "allocator": {"backend": "none"}, "target": {"gpu": "a100-80gb"}})",
     509515264, 465516544, 205002752},
    {"FSDP2 over two micro-batches",
     R"({"model": {"config": {"model_type": "llama", "vocab_size": 32000, "hidden_size": 512, "intermediate_size": 2048,
        "num_hidden_layers": 5, "num_attention_heads": 8, "num_key_value_heads": 2, "hidden_act": "silu",
        "tie_word_embeddings": false, "attention_bias": false, "mlp_bias": false, "head_dim": 64}}, "training": {"mode":
        "train", "batch_size": 2, "sequence_length": 64, "precision": "fp32", "attention": "sdpa", "optimizer": {"name":
        "sgd-momentum", "implementation": "foreach"}, "gradient_checkpointing": "full", "gradient_accumulation_steps":
        2}, "parallel": {"num_gpus": 4, "fsdp": "full", "fsdp_version": 2}, "allocator": {"backend": "none"}, "target":
        {"gpu": "a100-80gb"}})",
     432992768, 432960000, 155340800},
    {"FSDP2 reduces in fp32",
     R"({"model": {"config": {"model_type": "llama", "vocab_size": 8000, "hidden_size": 256, "intermediate_size": 680,
        "num_hidden_layers": 5, "num_attention_heads": 4, "num_key_value_heads": 4, "hidden_act": "silu",
        "tie_word_embeddings": false, "attention_bias": false, "mlp_bias": false, "head_dim": 64}}, "training": {"mode":
        "train", "batch_size": 2, "sequence_length": 128, "precision": "amp-bf16", "attention": "sdpa", "optimizer":
        {"name": "adamw", "implementation": "foreach"}, "gradient_checkpointing": "full", "gradient_accumulation_steps":
        1}, "parallel": {"num_gpus": 8, "fsdp": "full", "fsdp_version": 2, "reduce_precision": "fp32"}, "allocator":
        {"backend": "none"}, "target": {"gpu": "a100-80gb"}})",
     43511808, 47602688, 20076032},
    {"FSDP2 of GPT-2 under mixed precision",
     R"({"model": {"config": {"model_type": "gpt2", "vocab_size": 8000, "n_positions": 1024, "n_embd": 512, "n_layer":
        5, "n_head": 4, "n_inner": 1024, "activation_function": "gelu_new", "resid_pdrop": 0.1, "embd_pdrop": 0.1,
        "attn_pdrop": 0.1, "tie_word_embeddings": true}}, "training": {"mode": "train", "batch_size": 1,
        "sequence_length": 512, "precision": "amp-bf16", "attention": "sdpa", "optimizer": {"name": "adamw",
        "implementation": "foreach"}, "gradient_checkpointing": "none", "gradient_accumulation_steps": 1}, "parallel":
        {"num_gpus": 2, "fsdp": "full", "fsdp_version": 2}, "allocator": {"backend": "none"}, "target": {"gpu":
        "a100-80gb"}})",
     196447232, 204634112, 151361024},
    {"FSDP1 under mixed precision",
     R"({"model": {"config": {"model_type": "llama", "vocab_size": 32000, "hidden_size": 512, "intermediate_size": 1360,
        "num_hidden_layers": 8, "num_attention_heads": 8, "num_key_value_heads": 8, "hidden_act": "silu",
        "tie_word_embeddings": false, "attention_bias": false, "mlp_bias": false, "head_dim": 64}}, "training": {"mode":
        "train", "batch_size": 1, "sequence_length": 64, "precision": "amp-bf16", "attention": "sdpa", "optimizer":
        {"name": "adamw", "implementation": "foreach"}, "gradient_checkpointing": "full", "gradient_accumulation_steps":
        1}, "parallel": {"num_gpus": 8, "fsdp": "full", "fsdp_version": 1}, "allocator": {"backend": "none"}, "target":
        {"gpu": "a100-80gb"}})",
     173641728, 295984640, 144696320},
    {"FSDP1 casts its gradient for the reduction",
     R"({"model": {"config": {"model_type": "llama", "vocab_size": 32000, "hidden_size": 512, "intermediate_size": 2048,
        "num_hidden_layers": 3, "num_attention_heads": 8, "num_key_value_heads": 8, "hidden_act": "silu",
        "tie_word_embeddings": false, "attention_bias": false, "mlp_bias": false, "head_dim": 64}}, "training": {"mode":
        "train", "batch_size": 2, "sequence_length": 64, "precision": "amp-bf16", "attention": "sdpa", "optimizer":
        {"name": "adamw", "implementation": "fused"}, "gradient_checkpointing": "none", "gradient_accumulation_steps":
        1}, "parallel": {"num_gpus": 8, "fsdp": "full", "fsdp_version": 1, "reduce_precision": "fp32"}, "allocator":
        {"backend": "none"}, "target": {"gpu": "a100-80gb"}})",
     186111488, 287330304, 90718720},
    {"FSDP1 in bf16",
     R"({"model": {"config": {"model_type": "gpt2", "vocab_size": 32000, "n_positions": 1024, "n_embd": 512, "n_layer":
        8, "n_head": 4, "n_inner": 1360, "activation_function": "gelu_new", "resid_pdrop": 0.1, "embd_pdrop": 0.1,
        "attn_pdrop": 0.1, "tie_word_embeddings": true}}, "training": {"mode": "train", "batch_size": 4,
        "sequence_length": 64, "precision": "bf16", "attention": "sdpa", "optimizer": {"name": "sgd-momentum",
        "implementation": "foreach"}, "gradient_checkpointing": "none", "gradient_accumulation_steps": 1}, "parallel":
        {"num_gpus": 2, "fsdp": "full", "fsdp_version": 1}, "allocator": {"backend": "none"}, "target": {"gpu":
        "a100-80gb"}})",
     236184064, 257457664, 109469184},
    {"ZeRO-2 with its optimizer on the host: norms in fp64 on the way",
     R"({"model": {"config": {"model_type": "llama", "vocab_size": 1003, "hidden_size": 512, "intermediate_size": 2048,
        "num_hidden_layers": 4, "num_attention_heads": 4, "num_key_value_heads": 4, "hidden_act": "silu",
        "tie_word_embeddings": false, "attention_bias": false, "mlp_bias": false, "head_dim": 128}}, "training":
        {"mode": "train", "batch_size": 1, "sequence_length": 128, "precision": "bf16", "attention": "sdpa",
        "optimizer": {"name": "adamw", "implementation": "fused"}, "gradient_checkpointing": "full"}, "parallel":
        {"num_gpus": 8, "zero_stage": 2, "zero": {"reduce_bucket_size": 1000000, "overlap_comm": false}, "offload":
        {"optimizer": "cpu"}}, "allocator": {"backend": "none"}, "target": {"gpu": "a100-80gb"}})",
     40144384, 55783424, 37721600},
    {"ZeRO-3 of adapters",
     R"({"model": {"config": {"model_type": "llama", "vocab_size": 8000, "hidden_size": 512, "intermediate_size": 2048,
        "num_hidden_layers": 4, "num_attention_heads": 4, "num_key_value_heads": 2, "hidden_act": "silu",
        "tie_word_embeddings": false, "attention_bias": false, "mlp_bias": false, "head_dim": 128}}, "training":
        {"mode": "train", "batch_size": 2, "sequence_length": 512, "precision": "bf16", "attention": "sdpa",
        "optimizer": {"name": "adamw", "implementation": "fused"}, "gradient_checkpointing": "none", "lora": {"rank": 8,
        "targets": ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"], "dropout": 0.0,
        "precision": "bf16"}}, "parallel": {"num_gpus": 8, "zero_stage": 3, "zero": {"reduce_bucket_size": 1000000,
        "prefetch_bucket_size": 50000000, "max_live_parameters": 1000000000}}, "allocator": {"backend": "none"},
        "target": {"gpu": "a100-80gb"}})",
     236725760, 253093376, 9459200},
    {"ZeRO-2 of adapters",
     R"({"model": {"config": {"model_type": "llama", "vocab_size": 32000, "hidden_size": 1024, "intermediate_size":
        4096, "num_hidden_layers": 6, "num_attention_heads": 8, "num_key_value_heads": 8, "hidden_act": "silu",
        "tie_word_embeddings": false, "attention_bias": false, "mlp_bias": false, "head_dim": 128}}, "training":
        {"mode": "train", "batch_size": 1, "sequence_length": 512, "precision": "bf16", "attention": "sdpa",
        "optimizer": {"name": "adamw", "implementation": "fused"}, "gradient_checkpointing": "none", "lora": {"rank": 8,
        "targets": ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"], "dropout": 0.0,
        "precision": "bf16"}}, "parallel": {"num_gpus": 8, "zero_stage": 2, "zero": {"reduce_bucket_size": 1000000,
        "overlap_comm": false}}, "allocator": {"backend": "none"}, "target": {"gpu": "a100-80gb"}})",
     665602048, 697317376, 337538560},
};
// clang-format on

TEST(RecordedStrategiesTest, EachAllocatesWhatTheLibraryAllocates) {
  DryRunOptions options;
  options.policy = FrameworkPolicy::for_stack("2.15", 80);
  for (const Recorded& recorded : kRecorded) {
    const DryRun run = run_dry(read_job(parse_json(recorded.job, recorded.what)), options);
    const auto expect_near = [&](const char* phase, std::int64_t wanted) {
      const std::int64_t got = phase_peak(run, phase);
      EXPECT_LE(std::abs(static_cast<double>(got - wanted)), 0.005 * static_cast<double>(wanted))
          << recorded.what << ", " << phase << ": " << got << " instead of " << wanted;
    };
    expect_near("forward", recorded.forward);
    expect_near("backward", recorded.backward);
    expect_near("step", recorded.step);
  }
}

}  // namespace
}  // namespace memfathom

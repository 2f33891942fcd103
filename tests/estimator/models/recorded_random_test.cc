// Jobs that scripts/compare-random-steps drew, or the smallest like them, whose answers were more
// than 1 % off, and rules found with them: recorded from PyTorch 2.15 and transformers 5.23.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "core/error.h"
#include "tests/estimator/models/recorded_step.h"

namespace memfathom {
namespace {

struct Recorded {
  const char* what;
  const char* job;
  std::int64_t forward, backward, step;  // highest live bytes; 0: the case has no such phase
  std::int64_t parameters;
};

// clang-format off
const Recorded kRecorded[] = {
    {"the Trainer's label smoothing shifts and negates the logits in their own type",
     R"({"model": {"config": {"model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_size": 128, "num_hidden_layers": 3,
        "num_attention_heads": 4, "num_key_value_heads": 2, "intermediate_size": 256, "vocab_size": 2000}}, "training": {"mode":
        "train", "batch_size": 3, "optimizer": {"name": "sgd"}, "sequence_length": 129, "precision": "bf16", "label_smoothing": 0.1},
        "allocator": {"backend": "none"}, "target": {"gpu": "a100-80gb"}})",
     14187520, 15706112, 3829760, 955264},
    {"under autocast in fp32",
     R"({"model": {"config": {"model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_size": 128, "num_hidden_layers": 3,
        "num_attention_heads": 4, "num_key_value_heads": 2, "intermediate_size": 256, "vocab_size": 2000}}, "training": {"mode":
        "train", "batch_size": 3, "optimizer": {"name": "sgd"}, "sequence_length": 129, "precision": "amp-bf16", "label_smoothing":
        0.1}, "allocator": {"backend": "none"}, "target": {"gpu": "a100-80gb"}})",
     22167552, 25223680, 7647232, 955264},
    {"of an encoder-decoder without a shift",
     R"({"model": {"config": {"model_type": "bart", "architectures": ["BartForConditionalGeneration"], "vocab_size": 1000, "d_model":
        128, "encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": 4, "decoder_attention_heads": 4, "encoder_ffn_dim":
        256, "decoder_ffn_dim": 256, "max_position_embeddings": 512}}, "training": {"mode": "train", "batch_size": 3, "optimizer":
        {"name": "sgd"}, "sequence_length": 128, "target_sequence_length": 100, "precision": "bf16", "label_smoothing": 0.1},
        "allocator": {"backend": "none"}, "target": {"gpu": "a100-80gb"}})",
     9830400, 11025920, 3725312, 922624},
    {"of T5",
     R"({"model": {"config": {"model_type": "t5", "architectures": ["T5ForConditionalGeneration"], "vocab_size": 1000, "d_model": 128,
        "d_kv": 32, "d_ff": 256, "num_layers": 2, "num_heads": 4}}, "training": {"mode": "train", "batch_size": 3, "optimizer": {"name":
        "sgd"}, "sequence_length": 128, "precision": "bf16", "label_smoothing": 0.1}, "allocator": {"backend": "none"}, "target":
        {"gpu": "a100-80gb"}})",
     15814656, 17345536, 3151360, 785152},
    {"of a classifier of sequences",
     R"({"model": {"config": {"model_type": "bert", "architectures": ["BertForSequenceClassification"], "hidden_size": 128,
        "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 256, "vocab_size": 1000, "max_position_embeddings":
        512}}, "training": {"mode": "train", "batch_size": 3, "optimizer": {"name": "sgd"}, "sequence_length": 128, "precision": "fp32",
        "label_smoothing": 0.1}, "allocator": {"backend": "none"}, "target": {"gpu": "a100-80gb"}})",
     7500800, 7845888, 3819520, 475778},
    {"bitsandbytes' Lion keeps fp32 states of 16-bit parameters",
     R"({"model": {"config": {"model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_size": 128, "num_hidden_layers": 3,
        "num_attention_heads": 4, "num_key_value_heads": 2, "intermediate_size": 256, "vocab_size": 2000}}, "training": {"mode":
        "train", "batch_size": 1, "optimizer": {"name": "lion_32bit"}, "sequence_length": 8, "precision": "bf16"}, "allocator":
        {"backend": "none"}, "target": {"gpu": "a100-80gb"}})",
     6031360, 7650304, 7647744, 955264},
    {"no mask of a window where no layer has one",
     R"({"model": {"config": {"model_type": "dots1", "architectures": ["Dots1ForCausalLM"], "hidden_size": 128, "num_hidden_layers": 2,
        "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 32, "intermediate_size": 128, "moe_intermediate_size": 64,
        "n_routed_experts": 4, "num_experts_per_tok": 2, "first_k_dense_replace": 2, "n_shared_experts": 1, "vocab_size": 500}},
        "training": {"mode": "train", "batch_size": 3, "optimizer": {"name": "sgd"}, "sequence_length": 200, "precision": "fp32",
        "attention": "eager"}, "allocator": {"backend": "none"}, "target": {"gpu": "a100-80gb"}})",
     19021312, 20210688, 2612736, 325376},
    {"Granite multiplies by factors of 1, too",
     R"({"model": {"config": {"model_type": "granite", "architectures": ["GraniteForCausalLM"], "hidden_size": 128, "num_hidden_layers":
        3, "num_attention_heads": 4, "num_key_value_heads": 2, "intermediate_size": 128, "vocab_size": 300}}, "training": {"mode":
        "train", "batch_size": 3, "optimizer": {"name": "sgd"}, "sequence_length": 256, "precision": "bf16", "gradient_checkpointing":
        "full", "lora": {"rank": 4, "targets": ["q_proj"], "dropout": 0, "precision": "fp32"}}, "allocator": {"backend": "none"},
        "target": {"gpu": "a100-80gb"}})",
     4892160, 5549568, 1172480, 375680},
    {"Swin's embeddings and the input of its stages have names",
     R"({"model": {"config": {"model_type": "swin", "architectures": ["SwinForImageClassification"], "image_size": 224, "patch_size": 4,
        "embed_dim": 32, "depths": [2, 2, 4, 2], "num_heads": [1, 2, 4, 8], "window_size": 7, "num_labels": 10, "drop_path_rate": 0.1}},
        "training": {"mode": "train", "batch_size": 2, "optimizer": {"name": "sgd"}, "image_size": 224, "precision": "bf16", "lora":
        {"rank": 8, "targets": ["q_proj", "v_proj"], "dropout": 0, "precision": "fp32"}}, "allocator": {"backend": "none"}, "target":
        {"gpu": "a100-80gb"}})",
     34473984, 34073088, 6504448, 2721856},
    {"ELU in place keeps its result",
     R"({"model": {"input": {"shape": [8, 32, 32]}, "layers": [{"type": "conv2d", "out": 8, "kernel": 1}, {"type": "elu", "inplace":
        true}, {"type": "conv2d", "out": 8, "kernel": 1}], "loss": "mse"}, "training": {"mode": "train", "batch_size": 4, "precision":
        "fp32", "optimizer": {"name": "sgd"}}, "allocator": {"backend": "none"}, "target": {"gpu": "a100-80gb"}})",
     527360, 659456, 266752, 144},
    {"generate() counts positions for each sample",
     R"({"model": {"config": {"model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_size": 128, "num_hidden_layers": 2,
        "num_attention_heads": 4, "num_key_value_heads": 2, "intermediate_size": 256, "vocab_size": 2000, "head_dim": 64}}, "training":
        {"mode": "generate", "batch_size": 4, "optimizer": {"name": "sgd"}, "sequence_length": 300, "precision": "bf16", "new_tokens":
        4}, "allocator": {"backend": "none"}, "target": {"gpu": "a100-80gb"}})",
     6759424, 0, 0, 905856},
    {"and GPT-2 embeds them",
     R"({"model": {"config": {"model_type": "gpt2", "architectures": ["GPT2LMHeadModel"], "n_embd": 128, "n_layer": 2, "n_head": 4,
        "vocab_size": 1000, "n_positions": 512}}, "training": {"mode": "generate", "batch_size": 4, "optimizer": {"name": "sgd"},
        "sequence_length": 300, "precision": "bf16", "new_tokens": 4}, "allocator": {"backend": "none"}, "target": {"gpu": "a100-80gb"}})",
     9202176, 0, 0, 590336},
    {"cat gives the widest type of its parts",
     R"({"model": {"input": {"shape": [1, 64, 64]}, "layers": [{"type": "conv2d", "out": 16, "kernel": 3, "padding": 1}, {"type":
        "concat", "branches": [[], [{"type": "conv2d", "out": 16, "kernel": 2, "stride": 2}, {"type": "upsample", "scale": 2, "mode":
        "bilinear"}]]}, {"type": "conv2d", "out": 2, "kernel": 1}], "loss": "cross_entropy"}, "training": {"mode": "train",
        "batch_size": 4, "optimizer": {"name": "sgd"}, "precision": "amp-bf16"}, "allocator": {"backend": "none"}, "target": {"gpu":
        "a100-80gb"}})",
     3977216, 3911168, 211456, 1266},
    {"no fused kernel takes Falcon's single key head",
     R"({"model": {"config": {"model_type": "falcon", "architectures": ["FalconForCausalLM"], "hidden_size": 256,
        "num_hidden_layers": 3, "num_attention_heads": 8, "vocab_size": 500}}, "training": {"mode": "train", "batch_size": 2,
        "optimizer": {"name": "sgd"}, "sequence_length": 200, "precision": "bf16"}, "allocator": {"backend": "none"}, "target":
        {"gpu": "a100-80gb"}})",
     24884224, 27226624, 8586240, 2145280},
    {"DINOv3's eager softmax stays in 16 bits",
     R"({"model": {"config": {"model_type": "dinov3_vit", "architectures": ["DINOv3ViTModel"], "hidden_size": 96,
        "num_hidden_layers": 3, "num_attention_heads": 4, "intermediate_size": 192, "image_size": 112, "patch_size": 14}}, "training":
        {"mode": "train", "batch_size": 2, "optimizer": {"name": "sgd"}, "image_size": 112, "precision": "bf16", "attention":
        "eager"}, "allocator": {"backend": "none"}, "target": {"gpu": "a100-80gb"}})",
     2056192, 2118144, 1301504, 281568},
    {"DistilBERT frees its wide activations before the norm",
     R"({"model": {"config": {"model_type": "distilbert", "architectures": ["DistilBertForTokenClassification"], "dim": 128,
        "n_layers": 3, "n_heads": 4, "hidden_dim": 512, "vocab_size": 500, "max_position_embeddings": 512}}, "training": {"mode":
        "train", "batch_size": 2, "optimizer": {"name": "sgd"}, "sequence_length": 200, "precision": "bf16", "lora": {"rank": 4,
        "targets": ["q_lin", "v_lin"], "dropout": 0, "precision": "fp32"}}, "allocator": {"backend": "none"}, "target": {"gpu":
        "a100-80gb"}})",
     6697472, 6800384, 1518592, 731010},
    {"and so does ALBERT",
     R"({"model": {"config": {"model_type": "albert", "architectures": ["AlbertForTokenClassification"], "hidden_size": 128,
        "num_hidden_layers": 3, "num_attention_heads": 4, "intermediate_size": 512, "vocab_size": 500, "max_position_embeddings": 512,
        "embedding_size": 64}}, "training": {"mode": "train", "batch_size": 2, "optimizer": {"name": "sgd"}, "sequence_length": 200,
        "precision": "bf16", "lora": {"rank": 4, "targets": ["query", "value"], "dropout": 0, "precision": "fp32"}}, "allocator":
        {"backend": "none"}, "target": {"gpu": "a100-80gb"}})",
     9308160, 9871872, 580096, 273922},
    {"the windows of Qwen2-MoE lie in even layers",
     R"({"model": {"config": {"model_type": "qwen2_moe", "architectures": ["Qwen2MoeForCausalLM"], "hidden_size": 128,
        "num_hidden_layers": 3, "num_attention_heads": 4, "num_key_value_heads": 2, "intermediate_size": 256, "vocab_size": 500,
        "num_experts_per_tok": 2, "moe_intermediate_size": 64, "num_experts": 4, "shared_expert_intermediate_size": 128,
        "use_sliding_window": true, "sliding_window": 64, "max_window_layers": 3}}, "training": {"mode": "train", "batch_size": 2,
        "optimizer": {"name": "sgd"}, "sequence_length": 200, "precision": "bf16"}, "allocator": {"backend": "none"}, "target":
        {"gpu": "a100-80gb"}})",
     11944960, 12337152, 2902016, 721408},
    {"those of Qwen3-MoE in all",
     R"({"model": {"config": {"model_type": "qwen3_moe", "architectures": ["Qwen3MoeForCausalLM"], "hidden_size": 128,
        "num_hidden_layers": 3, "num_attention_heads": 4, "num_key_value_heads": 2, "intermediate_size": 256, "vocab_size": 500,
        "num_experts_per_tok": 2, "moe_intermediate_size": 64, "num_experts": 4, "head_dim": 32, "use_sliding_window": true,
        "sliding_window": 64}}, "training": {"mode": "train", "batch_size": 2, "optimizer": {"name": "sgd"}, "sequence_length": 200,
        "precision": "bf16"}, "allocator": {"backend": "none"}, "target": {"gpu": "a100-80gb"}})",
     11784192, 12176384, 2306048, 572992},
    {"those of SmolLM3 where no positions are rotated",
     R"({"model": {"config": {"model_type": "smollm3", "architectures": ["SmolLM3ForCausalLM"], "hidden_size": 128,
        "num_hidden_layers": 3, "num_attention_heads": 4, "num_key_value_heads": 2, "intermediate_size": 256, "vocab_size": 500,
        "pad_token_id": 0, "use_sliding_window": true, "sliding_window": 64, "no_rope_layer_interval": 2}}, "training": {"mode":
        "train", "batch_size": 2, "optimizer": {"name": "sgd"}, "sequence_length": 200, "precision": "bf16"}, "allocator": {"backend":
        "none"}, "target": {"gpu": "a100-80gb"}})",
     9603072, 9995264, 2037760, 507264},
    {"PLBart drops attention weights by default",
     R"({"model": {"config": {"model_type": "plbart", "architectures": ["PLBartForConditionalGeneration"], "d_model": 128,
        "encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": 4, "decoder_attention_heads": 4, "encoder_ffn_dim": 256,
        "decoder_ffn_dim": 256, "max_position_embeddings": 512, "vocab_size": 500}}, "training": {"mode": "train", "batch_size": 2,
        "optimizer": {"name": "sgd"}, "sequence_length": 128, "precision": "bf16", "attention": "eager"}, "allocator": {"backend":
        "none"}, "target": {"gpu": "a100-80gb"}})",
     10796544, 11052032, 3464704, 858624},
    {"Seed-OSS drops by default",
     R"({"model": {"config": {"model_type": "seed_oss", "architectures": ["SeedOssForCausalLM"], "hidden_size": 128,
        "num_hidden_layers": 3, "num_attention_heads": 4, "num_key_value_heads": 2, "intermediate_size": 256, "vocab_size": 500,
        "head_dim": 32}}, "training": {"mode": "train", "batch_size": 2, "optimizer": {"name": "sgd"}, "sequence_length": 200,
        "precision": "bf16"}, "allocator": {"backend": "none"}, "target": {"gpu": "a100-80gb"}})",
     9779712, 10171904, 2302976, 572032},
    {"Ministral makes both masks",
     R"({"model": {"config": {"model_type": "ministral", "architectures": ["MinistralForCausalLM"], "hidden_size": 128,
        "num_hidden_layers": 3, "num_attention_heads": 4, "num_key_value_heads": 2, "intermediate_size": 256, "vocab_size": 500,
        "head_dim": 32, "sliding_window": 64}}, "training": {"mode": "train", "batch_size": 2, "optimizer": {"name": "sgd"},
        "sequence_length": 200, "precision": "bf16", "attention": "eager", "lora": {"rank": 4, "targets": ["q_proj"], "dropout": 0,
        "precision": "fp32"}}, "allocator": {"backend": "none"}, "target": {"gpu": "a100-80gb"}})",
     12956672, 13246464, 1174016, 574336},
};
// clang-format on

TEST(RecordedRandomJobs, EachAllocatesWhatPyTorchAllocates) {
  for (const Recorded& recorded : kRecorded) {
    const DryRun run = run_recorded(recorded.job);
    EXPECT_EQ(run.parameter_count, recorded.parameters) << recorded.what;
    const std::int64_t forward = std::max(peak_of(run, "forward"), peak_of(run, "prefill"));
    expect_recorded(forward, recorded.forward, recorded.what);
    if (recorded.backward > 0)
      expect_recorded(peak_of(run, "backward"), recorded.backward, recorded.what);
    if (recorded.step > 0) expect_recorded(peak_of(run, "step"), recorded.step, recorded.what);
  }
}

TEST(RecordedRandomJobs, FreezingTheLanguageModelOfATextModelIsRefused) {
  const std::string job = recorded_job(R"({"model_type": "llama", "hidden_size": 64,
      "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 64, "vocab_size": 100})",
                                       R"("sequence_length": 8, "freeze": ["language_model"])");
  EXPECT_THROW(run_recorded(job), Error);
}

TEST(RecordedRandomJobs, OptWithNormsWithoutWeightsIsRefused) {
  const std::string job = recorded_job(R"({"model_type": "opt", "hidden_size": 64, "ffn_dim": 64,
      "num_hidden_layers": 1, "num_attention_heads": 2, "vocab_size": 100,
      "max_position_embeddings": 64, "layer_norm_elementwise_affine": false})",
                                       R"("sequence_length": 8)");
  EXPECT_THROW(run_recorded(job), Error);
}

}  // namespace
}  // namespace memfathom

// Cases recorded from PyTorch 2.15 with fake tensors (as the oracle's tables were, by its README),
// each for one rule of PyTorch that the tables do not show.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "estimator/job/read_job.h"
#include "estimator/run/dry_run.h"

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
    {"prelu is on autocast's 16-bit list",
     R"({"model": {"input": {"shape": [511, 1000], "dtype": "fp32", "requires_grad": true, "source": "layer"},
        "layers": [{"type": "prelu"}], "loss": "sink"}, "training": {"mode": "train", "precision": "amp-bf16", "optimizer": "none",
        "batch_size": 3}, "allocator": {"backend": "none"}, "target": {"gpu": "a100-80gb"}})",
     12267520, 12268544, 0, 1},
    {"prelu inside a feed-forward part",
     R"({"model": {"input": {"shape": [129, 640], "dtype": "bf16", "requires_grad": true, "source": "layer"},
        "layers": [{"type": "mlp", "hidden": 640, "ffn": 1536, "activation": "prelu"}, {"type": "dropout", "p": 0.2}],
        "loss": "sink"}, "training": {"mode": "train", "precision": "bf16", "optimizer": "none", "batch_size": 3},
        "allocator": {"backend": "none"}, "target": {"gpu": "a100-80gb"}})",
     8050688, 11158016, 0, 1968257},
    {"dropout in place keeps noise of the input's type",
     R"({"model": {"input": {"shape": [100, 768], "dtype": "bf16", "requires_grad": true, "source": "layer"},
        "layers": [{"type": "dropout", "p": 0.3, "inplace": true}], "loss": "sink"}, "training": {"mode": "train",
        "precision": "bf16", "optimizer": "none", "batch_size": 3}, "allocator": {"backend": "none"}, "target": {"gpu": "a100-80gb"}})",
     923136, 1383936, 0, 0},
    {"fused RMS norm gives no gradient nobody wants",
     R"({"model": {"input": {"shape": [256, 1024], "dtype": "fp32", "requires_grad": false, "source": "layer"},
        "layers": [{"type": "rms_norm", "features": 1024}], "loss": "sink"}, "training": {"mode": "train", "precision": "fp32",
        "optimizer": "none", "batch_size": 2}, "allocator": {"backend": "none"}, "target": {"gpu": "a100-80gb"}})",
     4201984, 4206080, 0, 1024},
    {"autocast widens fused RMS norm",
     R"({"model": {"input": {"shape": [256, 1024], "dtype": "bf16", "requires_grad": true, "source": "layer"},
        "layers": [{"type": "rms_norm", "features": 1024}], "loss": "sink"}, "training": {"mode": "train", "precision": "amp-bf16",
        "optimizer": "none", "batch_size": 2}, "allocator": {"backend": "none"}, "target": {"gpu": "a100-80gb"}})",
     5250560, 6303232, 0, 1024},
    {"cuDNN's batch norm always makes the input's gradient",
     R"({"model": {"input": {"shape": [96, 33, 33], "dtype": "fp32", "requires_grad": false, "source": "layer"},
        "layers": [{"type": "batch_norm", "features": 96}], "loss": "sink"}, "training": {"mode": "train", "precision": "fp32",
        "optimizer": "none", "batch_size": 1}, "allocator": {"backend": "none"}, "target": {"gpu": "a100-80gb"}})",
     841728, 1261056, 0, 192},
    {"instance norm is batch norm",
     R"({"model": {"input": {"shape": [96, 33, 33], "dtype": "fp32", "requires_grad": false, "source": "layer"},
        "layers": [{"type": "instance_norm", "features": 96}], "loss": "sink"}, "training": {"mode": "train", "precision": "fp32",
        "optimizer": "none", "batch_size": 1}, "allocator": {"backend": "none"}, "target": {"gpu": "a100-80gb"}})",
     840704, 1260032, 0, 192},
    {"log softmax widens fp16 inside its kernel",
     R"({"model": {"input": {"shape": [5, 129, 129], "dtype": "fp16", "requires_grad": true, "source": "layer"},
        "layers": [{"type": "log_softmax"}], "loss": "sink"}, "training": {"mode": "train", "precision": "amp-fp16",
        "optimizer": "none", "batch_size": 3}, "allocator": {"backend": "none"}, "target": {"gpu": "a100-80gb"}})",
     1500160, 2499072, 0, 0},
    {"eager attention on a short sequence keeps q, k, v",
     R"({"model": {"input": {"shape": [77, 320], "dtype": "fp32", "requires_grad": true, "source": "layer"},
        "layers": [{"type": "attention", "hidden": 320, "heads": 8, "kv_heads": 8, "implementation": "eager", "bias": false,
        "causal": false, "dropout": 0.1}], "loss": "sink"}, "training": {"mode": "train", "precision": "fp32", "optimizer": "none",
        "batch_size": 7}, "allocator": {"backend": "none"}, "target": {"gpu": "a100-80gb"}})",
     11529728, 10507264, 0, 409600},
    {"flash attention pads heads to steps of 8",
     R"({"model": {"input": {"shape": [64, 360], "dtype": "bf16", "requires_grad": true, "source": "layer"},
        "layers": [{"type": "attention", "hidden": 360, "heads": 10, "kv_heads": 10, "implementation": "flash", "bias": false,
        "causal": true}], "loss": "sink"}, "training": {"mode": "train", "precision": "bf16", "optimizer": "none", "batch_size": 2},
        "allocator": {"backend": "none"}, "target": {"gpu": "a100-80gb"}})",
     2008064, 2446848, 0, 518400},
    {"the math fallback makes its weights before its result",
     R"({"model": {"input": {"shape": [200, 1536], "dtype": "bf16", "requires_grad": true, "source": "layer"},
        "layers": [{"type": "attention", "hidden": 512, "heads": 8, "implementation": "math", "projections": false,
        "mask": "padding"}], "loss": "sink"}, "training": {"mode": "train", "precision": "bf16", "optimizer": "none",
        "batch_size": 3}, "allocator": {"backend": "none"}, "target": {"gpu": "a100-80gb"}})",
     18409472, 15207936, 0, 0},
    {"the math fallback with grouped heads",
     R"({"model": {"input": {"shape": [77, 1024], "dtype": "bf16", "requires_grad": true, "source": "layer"},
        "layers": [{"type": "attention", "hidden": 1024, "heads": 16, "kv_heads": 4, "implementation": "math", "bias": false,
        "causal": true}], "loss": "sink"}, "training": {"mode": "train", "precision": "bf16", "optimizer": "none", "batch_size": 1},
        "allocator": {"backend": "none"}, "target": {"gpu": "a100-80gb"}})",
     8439808, 11118080, 0, 2621440},
    {"heads are joined under one name",
     R"({"model": {"input": {"shape": [145, 384], "dtype": "fp32", "requires_grad": true, "source": "layer"},
        "layers": [{"type": "multihead_attention", "hidden": 384, "heads": 6, "implementation": "sdpa", "dropout": 0.1,
        "need_weights": true}], "loss": "sink"}, "training": {"mode": "train", "precision": "fp32", "optimizer": "none",
        "batch_size": 3}, "allocator": {"backend": "none"}, "target": {"gpu": "a100-80gb"}})",
     11371008, 12556288, 0, 591360},
    {"norms first: a norm dies before the dropout",
     R"({"model": {"input": {"shape": [61, 256], "dtype": "fp32", "requires_grad": true, "source": "layer"},
        "layers": [{"type": "transformer_block", "style": "torch", "hidden": 256, "heads": 4, "ffn": 1000, "activation": "relu",
        "dropout": 0.2, "implementation": "sdpa", "norm_first": true}], "loss": "sink"}, "training": {"mode": "train",
        "precision": "amp-bf16", "optimizer": "none", "batch_size": 3}, "allocator": {"backend": "none"},
        "target": {"gpu": "a100-80gb"}})",
     6899712, 7779328, 0, 777448},
    {"label smoothing sums in fp32 under autocast",
     R"({"model": {"input": {"shape": [5003], "dtype": "bf16", "requires_grad": true, "source": "layer"}, "layers": [],
        "loss": "cross_entropy"}, "training": {"mode": "train", "precision": "amp-bf16", "optimizer": "none", "batch_size": 303,
        "label_smoothing": 0.1}, "allocator": {"backend": "none"}, "target": {"gpu": "a100-80gb"}})",
     12137472, 18197504, 0, 0},
    {"autocast widens the L1 loss",
     R"({"model": {"input": {"shape": [99, 500], "dtype": "bf16", "requires_grad": true, "source": "layer"}, "layers": [],
        "loss": "l1"}, "training": {"mode": "train", "precision": "amp-bf16", "optimizer": "none", "batch_size": 3},
        "allocator": {"backend": "none"}, "target": {"gpu": "a100-80gb"}})",
     2974208, 2676736, 0, 0},
    {"Adagrad with decay multiplies in place",
     R"({"model": {"input": {"shape": [300], "dtype": "bf16"}, "layers": [{"type": "linear", "in": 300, "out": 812},
        {"type": "relu"}, {"type": "linear", "in": 812, "out": 812}, {"type": "relu"}, {"type": "linear", "in": 812, "out": 812},
        {"type": "relu"}, {"type": "linear", "in": 812, "out": 812}, {"type": "relu"}, {"type": "linear", "in": 812, "out": 7}],
        "loss": "cross_entropy"}, "training": {"mode": "train", "batch_size": 33, "precision": "bf16",
        "optimizer": {"name": "adagrad", "implementation": "foreach", "weight_decay": 0.0001}, "gradient_checkpointing": "none"},
        "allocator": {"backend": "none"}, "target": {"gpu": "a100-80gb"}})",
     9219072, 13469184, 22344192, 2230571},
    {"time as scale and shift",
     R"({"model": {"config": {"_class_name": "UNet2DModel", "sample_size": 32, "in_channels": 3, "out_channels": 3,
        "time_embedding_type": "positional", "down_block_types": ["DownBlock2D", "AttnDownBlock2D"],
        "up_block_types": ["AttnUpBlock2D", "UpBlock2D"], "block_out_channels": [64, 128], "layers_per_block": 2,
        "attention_head_dim": 8, "norm_num_groups": 32, "resnet_time_scale_shift": "scale_shift", "add_attention": false}},
        "training": {"mode": "train", "batch_size": 2, "precision": "amp-fp16", "attention": "sdpa", "optimizer": {"name": "adamw",
        "implementation": "foreach"}, "gradient_checkpointing": "none", "grad_scaler": true, "image_size": 32},
        "allocator": {"backend": "none"}, "target": {"gpu": "a100-80gb"}})",
     104630272, 104291840, 84874752, 4238531},
    {"time as Fourier features",
     R"({"model": {"config": {"_class_name": "UNet2DModel", "sample_size": 32, "in_channels": 3, "out_channels": 3,
        "time_embedding_type": "fourier", "down_block_types": ["DownBlock2D", "AttnDownBlock2D"], "up_block_types": ["AttnUpBlock2D",
        "UpBlock2D"], "block_out_channels": [64, 128], "layers_per_block": 2, "attention_head_dim": 8, "norm_num_groups": 32,
        "resnet_time_scale_shift": "default", "add_attention": true}}, "training": {"mode": "train", "batch_size": 2,
        "precision": "fp32", "attention": "sdpa", "optimizer": {"name": "adamw", "implementation": "fused"},
        "gradient_checkpointing": "none", "image_size": 32}, "allocator": {"backend": "none"}, "target": {"gpu": "a100-80gb"}})",
     101516288, 100657152, 64343552, 4008771},
    {"adapters on BERT's dense layers under autocast",
     R"({"model": {"config": {"model_type": "bert", "architectures": ["BertForSequenceClassification"], "vocab_size": 1000,
        "hidden_size": 256, "num_hidden_layers": 3, "num_attention_heads": 8, "intermediate_size": 1000, "hidden_act": "gelu",
        "hidden_dropout_prob": 0.1, "attention_probs_dropout_prob": 0.1, "max_position_embeddings": 512, "type_vocab_size": 2,
        "tie_word_embeddings": true, "num_labels": 5}}, "training": {"mode": "train", "batch_size": 3, "precision": "amp-bf16",
        "attention": "sdpa", "optimizer": {"name": "adamw", "implementation": "foreach"}, "gradient_checkpointing": "none",
        "lora": {"rank": 8, "targets": ["query", "key", "value", "dense"], "dropout": 0.0, "precision": "fp32"},
        "sequence_length": 100}, "allocator": {"backend": "none"}, "target": {"gpu": "a100-80gb"}})",
     29992448, 28490240, 13441024, 2901053},
    {"adapters cast 16-bit inputs under autocast",
     R"({"model": {"config": {"model_type": "gpt2", "architectures": ["GPT2LMHeadModel"], "vocab_size": 1003, "n_positions": 1024,
        "n_embd": 192, "n_layer": 3, "n_head": 6, "n_inner": null, "activation_function": "gelu_new", "resid_pdrop": 0.1,
        "embd_pdrop": 0.1, "attn_pdrop": 0.1, "tie_word_embeddings": true}}, "training": {"mode": "train", "batch_size": 3,
        "precision": "amp-fp16", "attention": "sdpa", "optimizer": {"name": "adamw", "implementation": "foreach"},
        "gradient_checkpointing": "none", "grad_scaler": true, "lora": {"rank": 4, "targets": ["c_attn", "c_proj", "c_fc"],
        "dropout": 0.0, "precision": "fp32"}, "sequence_length": 200}, "allocator": {"backend": "none"},
        "target": {"gpu": "a100-80gb"}})",
     47292416, 48023552, 7652352, 1761024},
    {"a cache begins in the keys' type",
     R"({"model": {"config": {"model_type": "qwen2", "architectures": ["Qwen2ForCausalLM"], "vocab_size": 1000, "hidden_size": 256,
        "intermediate_size": 688, "num_hidden_layers": 3, "num_attention_heads": 8, "num_key_value_heads": 2, "hidden_act": "silu",
        "max_position_embeddings": 32768, "tie_word_embeddings": true, "attention_dropout": 0.0}}, "training": {"mode": "train",
        "batch_size": 3, "precision": "amp-bf16", "attention": "sdpa", "optimizer": {"name": "adamw", "implementation": "foreach"},
        "gradient_checkpointing": "none", "use_cache": true, "sequence_length": 200}, "allocator": {"backend": "none"},
        "target": {"gpu": "a100-80gb"}})",
     66123264, 65772032, 46731776, 2335616},
    {"T5 clamps in fp16",
     R"({"model": {"config": {"model_type": "t5", "architectures": ["T5ForConditionalGeneration"], "vocab_size": 1000,
        "d_model": 256, "d_kv": 64, "d_ff": 600, "num_layers": 2, "num_decoder_layers": 4, "num_heads": 4,
        "relative_attention_num_buckets": 32, "dropout_rate": 0.1, "feed_forward_proj": "relu", "dense_act_fn": "relu",
        "is_gated_act": false, "scale_decoder_outputs": true, "tie_word_embeddings": true}}, "training": {"mode": "train",
        "batch_size": 3, "precision": "fp16", "attention": "sdpa", "optimizer": {"name": "adamw", "implementation": "foreach"},
        "gradient_checkpointing": "none", "sequence_length": 100, "target_sequence_length": 37}, "allocator": {"backend": "none"},
        "target": {"gpu": "a100-80gb"}})",
     46032384, 46354944, 47261696, 4725504},
    {"gelu_fast keeps more than gelu_new",
     R"({"model": {"config": {"model_type": "gpt2", "architectures": ["GPT2LMHeadModel"], "vocab_size": 1003, "n_positions": 1024,
        "n_embd": 192, "n_layer": 3, "n_head": 6, "n_inner": null, "activation_function": "gelu_fast", "resid_pdrop": 0.1,
        "embd_pdrop": 0.1, "attn_pdrop": 0.1, "tie_word_embeddings": true}}, "training": {"mode": "train", "batch_size": 2,
        "precision": "fp32", "attention": "sdpa", "optimizer": {"name": "adamw", "implementation": "foreach"},
        "gradient_checkpointing": "none", "sequence_length": 129}, "allocator": {"backend": "none"}, "target": {"gpu": "a100-80gb"}})",
     47361024, 48390656, 34519552, 1724160},
    {"a DeiT is a vision transformer",
     R"({"model": {"preset": "deit_small_patch16_224"}, "training": {"mode": "train", "batch_size": 2, "precision": "amp-bf16",
        "attention": "sdpa", "optimizer": {"name": "adamw", "implementation": "foreach"}, "gradient_checkpointing": "none",
        "image_size": 224}, "allocator": {"backend": "none"}, "target": {"gpu": "a100-80gb"}})",
     377143296, 379902464, 442219008, 22050664},
    {"OPT's feed-forward part is no module: the norm's result dies early",
     R"({"model": {"config": {"architectures": ["OPTForCausalLM"], "vocab_size": 1000, "hidden_size": 192, "num_hidden_layers": 3,
        "ffn_dim": 768, "max_position_embeddings": 512, "word_embed_proj_dim": 128, "dropout": 0.1, "attention_dropout": 0.0,
        "num_attention_heads": 6, "activation_function": "relu", "enable_bias": true, "layer_norm_elementwise_affine": true,
        "tie_word_embeddings": true, "model_type": "opt", "do_layer_norm_before": false}}, "training": {"mode": "train", "batch_size": 1, "precision": "fp16",
        "attention": "sdpa", "optimizer": {"name": "adamw", "implementation": "foreach"}, "gradient_checkpointing": "none",
        "padding_mask": true, "sequence_length": 64}, "allocator": {"backend": "none"}, "target": {"gpu": "a100-80gb"}})",
     11372544, 13412864, 16124928, 1610432},
    {"DistilBERT drops nothing after its attention",
     R"({"model": {"modules": [{"name": "model", "model": {"config": {"architectures": ["DistilBertForMaskedLM"], "vocab_size": 1000,
        "max_position_embeddings": 512, "n_layers": 3, "n_heads": 6, "dim": 192, "hidden_dim": 768, "dropout": 0.1,
        "attention_dropout": 0.1, "activation": "gelu", "seq_classif_dropout": 0.2, "tie_word_embeddings": true,
        "model_type": "distilbert"}}, "train": {"last": 0}}]}, "training": {"mode": "train", "batch_size": 2, "precision": "bf16",
        "attention": "sdpa", "optimizer": {"name": "adamw", "implementation": "foreach"}, "gradient_checkpointing": "none",
        "sequence_length": 100}, "allocator": {"backend": "none"}, "target": {"gpu": "a100-80gb"}})",
     7790592, 8113664, 4884480, 1663720},
    {"Phi 3 joins what it turned with nothing",
     R"({"model": {"config": {"architectures": ["Phi3ForCausalLM"], "vocab_size": 1000, "hidden_size": 192, "intermediate_size": 768,
        "num_hidden_layers": 3, "num_attention_heads": 6, "num_key_value_heads": 2, "resid_pdrop": 0.0, "embd_pdrop": 0.0,
        "attention_dropout": 0.0, "hidden_act": "silu", "max_position_embeddings": 4096, "tie_word_embeddings": false,
        "rope_parameters": {"rope_theta": 10000.0, "partial_rotary_factor": 1.0, "rope_type": "default"}, "model_type": "phi3"}},
        "training": {"mode": "train", "batch_size": 2, "precision": "bf16", "attention": "sdpa", "optimizer": {"name": "adamw",
        "implementation": "foreach"}, "gradient_checkpointing": "none", "hold_output": true, "sequence_length": 100},
        "allocator": {"backend": "none"}, "target": {"gpu": "a100-80gb"}})",
     21486592, 21881856, 20484096, 2007360},
    {"frozen experts keep no inputs",
     R"({"model": {"config": {"architectures": ["MixtralForCausalLM"], "vocab_size": 1000, "hidden_size": 192,
        "intermediate_size": 384, "num_hidden_layers": 2, "num_attention_heads": 6, "num_key_value_heads": 2, "hidden_act": "silu",
        "max_position_embeddings": 131072, "tie_word_embeddings": false, "attention_dropout": 0.0, "num_experts_per_tok": 2,
        "num_local_experts": 4, "model_type": "mixtral"}}, "training": {"mode": "train", "batch_size": 2, "precision": "amp-bf16",
        "attention": "sdpa", "optimizer": {"name": "adamw", "implementation": "foreach"}, "gradient_checkpointing": "none",
        "lora": {"rank": 8, "targets": ["q_proj", "v_proj"], "dropout": 0.1, "precision": "fp32"}, "sequence_length": 100},
        "allocator": {"backend": "none"}, "target": {"gpu": "a100-80gb"}})",
     18189824, 18425344, 9622016, 2362816},
    {"T5's first block makes the biases inside its checkpoint",
     R"({"model": {"modules": [{"name": "model", "model": {"config": {"model_type": "t5",
        "architectures": ["T5ForConditionalGeneration"], "vocab_size": 5000, "d_model": 192, "d_kv": 32, "d_ff": 1000,
        "num_layers": 5, "num_decoder_layers": 5, "num_heads": 6, "relative_attention_num_buckets": 32, "dropout_rate": 0.1,
        "feed_forward_proj": "relu", "dense_act_fn": "relu", "scale_decoder_outputs": true, "tie_word_embeddings": true}},
        "train": {"last": 0}}]}, "training": {"mode": "train", "batch_size": 4, "precision": "bf16", "autocast": "bf16",
        "attention": "sdpa", "optimizer": {"name": "rmsprop", "implementation": "foreach"}, "gradient_checkpointing": "full",
        "sequence_length": 333, "target_sequence_length": 37}, "allocator": {"backend": "none"}, "target": {"gpu": "a100-80gb"}})",
     29433856, 38417408, 20107264, 7017408},
    {"reentrant checkpoints hand T5's biases on",
     R"({"model": {"config": {"model_type": "t5", "architectures": ["T5ForConditionalGeneration"], "vocab_size": 3001,
        "d_model": 480, "d_kv": 80, "d_ff": 960, "num_layers": 2, "num_decoder_layers": 2, "num_heads": 6,
        "relative_attention_num_buckets": 32, "dropout_rate": 0.1, "feed_forward_proj": "relu", "dense_act_fn": "relu",
        "scale_decoder_outputs": true, "tie_word_embeddings": true}}, "training": {"mode": "train", "batch_size": 2,
        "precision": "bf16", "attention": "sdpa", "optimizer": {"name": "adamw", "implementation": "foreach"},
        "gradient_checkpointing": "full", "checkpoint_reentrant": true, "sequence_length": 100, "target_sequence_length": 100},
        "allocator": {"backend": "none"}, "target": {"gpu": "a100-80gb"}})",
     70016000, 91072512, 106636288, 10662624},
    {"adapters drop their input's dropout early",
     R"({"model": {"config": {"model_type": "bert", "architectures": ["BertForMaskedLM"], "vocab_size": 1000, "hidden_size": 640,
        "num_hidden_layers": 2, "num_attention_heads": 8, "intermediate_size": 1280, "hidden_act": "gelu",
        "hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0, "max_position_embeddings": 512, "type_vocab_size": 2,
        "tie_word_embeddings": true}}, "training": {"mode": "train", "batch_size": 1, "precision": "fp16", "attention": "sdpa",
        "optimizer": {"name": "adamw", "implementation": "fused"}, "gradient_checkpointing": "full", "lora": {"rank": 16,
        "targets": ["query", "key", "value", "dense"], "dropout": 0.05, "precision": "fp32"}, "hold_output": true,
        "sequence_length": 100}, "allocator": {"backend": "none"}, "target": {"gpu": "a100-80gb"}})",
     22250496, 25703936, 21302272, 8257640},
    {"who calls Swin's feed-forward part holds its input",
     R"({"model": {"preset": "swin_t"}, "training": {"mode": "inference", "batch_size": 4, "precision": "fp32", "image_size": 224},
        "allocator": {"backend": "none"}, "target": {"gpu": "a100-80gb"}})",
     173605888, 0, 0, 28288354},
    {"T5's output holds the encoder's result",
     R"({"model": {"config": {"model_type": "t5", "architectures": ["T5ForConditionalGeneration"], "vocab_size": 3001,
        "d_model": 256, "d_kv": 64, "d_ff": 512, "num_layers": 3, "num_decoder_layers": 3, "num_heads": 4,
        "relative_attention_num_buckets": 32, "dropout_rate": 0.1, "feed_forward_proj": "gated-gelu", "dense_act_fn": "relu",
        "is_gated_act": false, "scale_decoder_outputs": true, "tie_word_embeddings": false}}, "training": {"mode": "train",
        "batch_size": 1, "precision": "fp32", "attention": "sdpa", "optimizer": {"name": "adamw", "implementation": "foreach"},
        "gradient_checkpointing": "none", "lora": {"rank": 16, "targets": ["q", "k", "v", "o"], "dropout": 0.05,
        "precision": "fp32"}, "hold_output": true, "sequence_length": 333, "target_sequence_length": 37},
        "allocator": {"backend": "none"}, "target": {"gpu": "a100-80gb"}})",
     66442752, 66507264, 28653568, 5786368},
    {"label smoothing counts the targets that are not ignored",
     R"({"model": {"input": {"shape": [10], "dtype": "bf16", "requires_grad": true, "source": "layer"}, "layers": [],
        "loss": "cross_entropy"}, "training": {"mode": "train", "precision": "bf16", "optimizer": "none", "batch_size": 64,
        "label_smoothing": 0.1}, "allocator": {"backend": "none"}, "target": {"gpu": "a100-80gb"}})",
     9216, 7168, 0, 0},
};
// clang-format on

std::int64_t phase_peak(const DryRun& run, const std::string& phase) {
  std::int64_t peak = 0;
  for (const PhaseRecord& record : run.phases) {
    if (record.iteration == 2 && record.name == phase) peak = std::max(peak, record.allocated_peak);
  }
  return peak;
}

void expect_near(std::int64_t got, std::int64_t wanted, const std::string& what) {
  EXPECT_LE(std::abs(static_cast<double>(got - wanted)), 0.005 * static_cast<double>(wanted))
      << what << ": " << got << " instead of " << wanted;
}

TEST(RecordedCasesTest, EachAllocatesWhatPyTorchAllocates) {
  DryRunOptions options;
  options.policy = FrameworkPolicy::for_stack("2.15", 80);
  for (const Recorded& recorded : kRecorded) {
    const DryRun run = run_dry(read_job(parse_json(recorded.job, recorded.what)), options);
    EXPECT_EQ(run.parameter_count, recorded.parameters) << recorded.what;
    expect_near(phase_peak(run, "forward"), recorded.forward, recorded.what);
    expect_near(phase_peak(run, "backward"), recorded.backward, recorded.what);
    if (recorded.step > 0) expect_near(phase_peak(run, "step"), recorded.step, recorded.what);
  }
}

// A block's bias and the encoder's result go through every block, so the reentrant form has to take
// them as inputs: it once walked into the graph outside and crashed.
TEST(RecordedCasesTest, ReentrantCheckpointsOfT5GiveGradientsToWhatBlocksShare) {
  const auto peak = [](const char* reentrant) {
    const std::string job = std::string(R"({"model": {"config": {"model_type": "t5", "d_model": 64, "d_kv": 16, "d_ff": 128,
        "num_layers": 2, "num_heads": 4, "vocab_size": 500}}, "training": {"batch_size": 2, "sequence_length": 32,
        "precision": "fp32", "gradient_checkpointing": "full", "checkpoint_reentrant": )") +
                            reentrant + "}, \"allocator\": {\"backend\": \"none\"}}";
    return run_dry(read_job(parse_json(job, "job.json")), {}).allocated_peak.count();
  };
  EXPECT_NEAR(static_cast<double>(peak("true")) / static_cast<double>(peak("false")), 1, 0.1);
}

}  // namespace
}  // namespace memfathom

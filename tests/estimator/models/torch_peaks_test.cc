// Peaks that PyTorch itself reaches: modules of the libraries, run on its meta device with every
// storage followed from birth to release. Eager attention, no dropout, tensors only.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "tests/estimator/run_job.h"

namespace memfathom {
namespace {

struct Measured {
  const char* name;
  const char* model;
  const char* training;
  std::int64_t parameters;
  std::int64_t forward, backward;  // bytes, of the second iteration, no optimizer
};

// transformers 5.22, diffusers 0.42, PyTorch 2.15. CLIP's forward peak is 1 % higher here: two
// hidden states live a little longer.
constexpr Measured kMeasured[] = {
    {"vit_fp32",
     R"({"config": {"model_type": "vit", "num_hidden_layers": 4, "hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0, "num_labels": 1000}})",
     R"({"attention": "eager", "optimizer": "none", "batch_size": 8, "precision": "fp32"})",
     29864680, 503610368, 530578944},
    {"vit_bf16",
     R"({"config": {"model_type": "vit", "num_hidden_layers": 4, "hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0, "num_labels": 1000}})",
     R"({"attention": "eager", "optimizer": "none", "batch_size": 8, "precision": "bf16"})",
     29864680, 311478784, 324955648},
    {"bloom_fp32",
     R"({"config": {"model_type": "bloom", "hidden_size": 512, "n_layer": 4, "n_head": 8, "vocab_size": 5000, "hidden_dropout": 0.0, "attention_dropout": 0.0}})",
     R"({"attention": "eager", "optimizer": "none", "batch_size": 2, "sequence_length": 256, "precision": "fp32"})",
     15171584, 168257536, 182127616},
    {"bloom_bf16",
     R"({"config": {"model_type": "bloom", "hidden_size": 512, "n_layer": 4, "n_head": 8, "vocab_size": 5000, "hidden_dropout": 0.0, "attention_dropout": 0.0}})",
     R"({"attention": "eager", "optimizer": "none", "batch_size": 2, "sequence_length": 256, "precision": "bf16"})",
     15171584, 116295680, 121406464},
    {"bigcode_fp32",
     R"({"config": {"model_type": "gpt_bigcode", "n_embd": 512, "n_layer": 4, "n_head": 8, "vocab_size": 5000, "n_positions": 512, "resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0}})",
     R"({"attention": "eager", "optimizer": "none", "batch_size": 2, "sequence_length": 256, "precision": "fp32"})",
     13594112, 161158656, 171389952},
    {"bigcode_bf16",
     R"({"config": {"model_type": "gpt_bigcode", "n_embd": 512, "n_layer": 4, "n_head": 8, "vocab_size": 5000, "n_positions": 512, "resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0}})",
     R"({"attention": "eager", "optimizer": "none", "batch_size": 2, "sequence_length": 256, "precision": "bf16"})",
     13594112, 112858624, 117969920},
    {"bigcode_many_heads",
     R"({"config": {"model_type": "gpt_bigcode", "n_embd": 512, "n_layer": 4, "n_head": 8, "vocab_size": 5000, "n_positions": 512, "resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0, "multi_query": false}})",
     R"({"attention": "eager", "optimizer": "none", "batch_size": 2, "sequence_length": 256, "precision": "fp32"})",
     15432704, 168513024, 178744320},
    {"mixtral_fp32",
     R"({"config": {"model_type": "mixtral", "hidden_size": 512, "num_hidden_layers": 3, "num_attention_heads": 8, "num_key_value_heads": 2, "intermediate_size": 1024, "num_local_experts": 8, "num_experts_per_tok": 2, "vocab_size": 5000}})",
     R"({"attention": "eager", "optimizer": "none", "batch_size": 2, "sequence_length": 256, "precision": "fp32"})",
     44850688, 310327808, 374432256},
    {"mixtral_bf16",
     R"({"config": {"model_type": "mixtral", "hidden_size": 512, "num_hidden_layers": 3, "num_attention_heads": 8, "num_key_value_heads": 2, "intermediate_size": 1024, "num_local_experts": 8, "num_experts_per_tok": 2, "vocab_size": 5000}})",
     R"({"attention": "eager", "optimizer": "none", "batch_size": 2, "sequence_length": 256, "precision": "bf16"})",
     44850688, 186883584, 192492032},
    {"clip_fp32",
     R"({"config": {"model_type": "clip", "text_config": {"num_hidden_layers": 3}, "vision_config": {"num_hidden_layers": 3, "patch_size": 16}}})",
     R"({"attention": "eager", "optimizer": "none", "batch_size": 8, "precision": "fp32"})",
     57458433, 662689280, 769611264},
    {"cliptext_fp32", R"({"config": {"model_type": "clip_text_model", "num_hidden_layers": 3}})",
     R"({"attention": "eager", "optimizer": "none", "batch_size": 8, "precision": "fp32"})",
     34794496, 222199296, 279624704},
    {"clip_bf16",
     R"({"config": {"model_type": "clip", "text_config": {"num_hidden_layers": 3}, "vision_config": {"num_hidden_layers": 3, "patch_size": 16}}})",
     R"({"attention": "eager", "optimizer": "none", "batch_size": 8, "precision": "bf16"})",
     57458433, 380679168, 429566464},
    {"cliptext_bf16", R"({"config": {"model_type": "clip_text_model", "num_hidden_layers": 3}})",
     R"({"attention": "eager", "optimizer": "none", "batch_size": 8, "precision": "bf16"})",
     34794496, 115676672, 139815936},
    {"dit_fp32",
     R"({"config": {"_class_name": "DiTTransformer2DModel", "num_layers": 3, "num_attention_heads": 6, "attention_head_dim": 64, "out_channels": 8}})",
     R"({"attention": "math", "optimizer": "none", "batch_size": 8, "precision": "fp32"})",
     10187168, 281290240, 290454528},
    {"dit_bf16",
     R"({"config": {"_class_name": "DiTTransformer2DModel", "num_layers": 3, "num_attention_heads": 6, "attention_head_dim": 64, "out_channels": 8}})",
     R"({"attention": "math", "optimizer": "none", "batch_size": 8, "precision": "bf16"})",
     10187168, 173937664, 178512896},
    {"googlenet", R"({"preset": "googlenet"})",
     R"({"attention": "eager", "optimizer": "none", "batch_size": 8, "dropout": 0})", 13004888,
     440107520, 445705216},
    {"inception_v3", R"({"preset": "inception_v3"})",
     R"({"attention": "eager", "optimizer": "none", "batch_size": 8, "dropout": 0})", 27161264,
     902686208, 925726720},
    {"cogvae_fp32",
     R"({"config": {"_class_name": "AutoencoderKLCogVideoX", "block_out_channels": [32, 64, 64], "layers_per_block": 1, "down_block_types": ["CogVideoXDownBlock3D", "CogVideoXDownBlock3D", "CogVideoXDownBlock3D"], "up_block_types": ["CogVideoXUpBlock3D", "CogVideoXUpBlock3D", "CogVideoXUpBlock3D"], "latent_channels": 8}})",
     R"({"attention": "eager", "optimizer": "none", "batch_size": 1, "precision": "fp32", "image_size": [32, 48], "num_frames": 17})",
     2542963, 207937024, 192899072},
    {"cogvae_bf16",
     R"({"config": {"_class_name": "AutoencoderKLCogVideoX", "block_out_channels": [32, 64, 64], "layers_per_block": 1, "down_block_types": ["CogVideoXDownBlock3D", "CogVideoXDownBlock3D", "CogVideoXDownBlock3D"], "up_block_types": ["CogVideoXUpBlock3D", "CogVideoXUpBlock3D", "CogVideoXUpBlock3D"], "latent_channels": 8}})",
     R"({"attention": "eager", "optimizer": "none", "batch_size": 1, "precision": "bf16", "image_size": [32, 48], "num_frames": 17})",
     2542963, 104030720, 96512512},
};

class TorchPeaksTest : public testing::TestWithParam<Measured> {};

void expect_near(std::int64_t got, std::int64_t wanted, const char* what) {
  EXPECT_LE(std::abs(static_cast<double>(got - wanted)), 0.012 * static_cast<double>(wanted))
      << what << ": " << got << " instead of " << wanted;
}

TEST_P(TorchPeaksTest, AreReachedInForwardAndBackward) {
  const Measured& m = GetParam();
  const DryRun run =
      run_job(fmt::format(R"({{"model": {}, "training": {}, "allocator": {{"backend": "none"}}}})",
                          m.model, m.training));
  EXPECT_EQ(run.parameter_count, m.parameters);
  expect_near(phase_peak(run, "forward"), m.forward, "forward");
  expect_near(phase_peak(run, "backward"), m.backward, "backward");
}

INSTANTIATE_TEST_SUITE_P(Models, TorchPeaksTest, testing::ValuesIn(kMeasured),
                         [](const auto& tested) { return std::string(tested.param.name); });

}  // namespace
}  // namespace memfathom

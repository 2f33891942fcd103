// Models that read images or make them, recorded from PyTorch 2.15, transformers 5.23 and
// diffusers 0.42 with fake tensors: two samples, plain forward and backward.
#include <gtest/gtest.h>

#include <string>

#include "core/error.h"
#include "tests/estimator/models/recorded_step.h"

namespace memfathom {
namespace {

// clang-format off
constexpr const char* kQwen25Vl =
    R"({"model_type": "qwen2_5_vl", "tie_word_embeddings": false, "text_config": {"hidden_size": 256, "intermediate_size": 512,
         "num_hidden_layers": 3, "num_attention_heads": 8, "num_key_value_heads": 4, "vocab_size": 1000, "max_position_embeddings": 2048,
         "model_type": "qwen2_5_vl_text", "rope_parameters": {"rope_type": "default", "rope_theta": 1000000.0, "mrope_section": [4, 6, 6]}},
         "vision_config": {"depth": 4, "hidden_size": 128, "intermediate_size": 344, "num_heads": 4, "out_hidden_size": 256, "patch_size": 14,
         "spatial_merge_size": 2, "temporal_patch_size": 2, "window_size": 56, "fullatt_block_indexes": [1, 3]}})";

constexpr const char* kQwen2Vl =
    R"({"model_type": "qwen2_vl", "tie_word_embeddings": false, "text_config": {"hidden_size": 256, "intermediate_size": 512,
         "num_hidden_layers": 3, "num_attention_heads": 8, "num_key_value_heads": 4, "vocab_size": 1000, "max_position_embeddings": 2048,
         "model_type": "qwen2_vl_text", "rope_parameters": {"rope_type": "default", "rope_theta": 1000000.0, "mrope_section": [4, 6, 6]}},
         "vision_config": {"depth": 4, "embed_dim": 128, "mlp_ratio": 4, "num_heads": 4, "hidden_size": 256, "patch_size": 14,
         "spatial_merge_size": 2, "temporal_patch_size": 2}})";

constexpr const char* kPaligemma =
    R"({"model_type": "paligemma", "text_config": {"hidden_size": 256, "intermediate_size": 512, "num_hidden_layers": 3,
         "num_attention_heads": 8, "num_key_value_heads": 4, "head_dim": 32, "vocab_size": 1100, "max_position_embeddings": 2048,
         "model_type": "gemma"}, "vision_config": {"model_type": "siglip_vision_model", "hidden_size": 128, "intermediate_size": 256,
         "num_hidden_layers": 4, "num_attention_heads": 4, "image_size": 112, "patch_size": 14, "vision_use_head": false,
         "projection_dim": 256}, "image_token_index": 5, "projection_dim": 256})";

constexpr const char* kGemma3 =
    R"({"model_type": "gemma3", "text_config": {"hidden_size": 256, "intermediate_size": 512, "num_hidden_layers": 6,
         "num_attention_heads": 8, "num_key_value_heads": 4, "head_dim": 32, "vocab_size": 1100, "max_position_embeddings": 2048,
         "model_type": "gemma3_text", "sliding_window": 64}, "vision_config": {"model_type": "siglip_vision_model", "hidden_size": 128,
         "intermediate_size": 256, "num_hidden_layers": 4, "num_attention_heads": 4, "image_size": 112, "patch_size": 14,
         "vision_use_head": false}, "mm_tokens_per_image": 16, "image_token_index": 5})";

constexpr const char* kLlavaWithClip =
    R"({"model_type": "llava", "text_config": {"hidden_size": 256, "intermediate_size": 512, "num_hidden_layers": 3,
         "num_attention_heads": 8, "num_key_value_heads": 4, "head_dim": 32, "vocab_size": 1000, "max_position_embeddings": 2048,
         "model_type": "llama"}, "vision_config": {"model_type": "clip_vision_model", "hidden_size": 128, "intermediate_size": 256,
         "num_hidden_layers": 4, "num_attention_heads": 4, "image_size": 112, "patch_size": 14, "projection_dim": 64}, "image_token_index": 5})";

constexpr const char* kLlavaWithSiglip =
    R"({"model_type": "llava", "text_config": {"hidden_size": 256, "intermediate_size": 512, "num_hidden_layers": 3,
         "num_attention_heads": 8, "num_key_value_heads": 4, "head_dim": 32, "vocab_size": 1000, "max_position_embeddings": 2048,
         "model_type": "llama"}, "vision_config": {"model_type": "siglip_vision_model", "hidden_size": 128, "intermediate_size": 256,
         "num_hidden_layers": 4, "num_attention_heads": 4, "image_size": 112, "patch_size": 14, "vision_use_head": false},
         "image_token_index": 5, "vision_feature_layer": -1, "vision_feature_select_strategy": "full"})";

constexpr const char* kQwen3Vl =
    R"({"model_type": "qwen3_vl", "tie_word_embeddings": false, "text_config": {"hidden_size": 256, "intermediate_size": 512,
         "num_hidden_layers": 4, "num_attention_heads": 8, "num_key_value_heads": 4, "head_dim": 32, "vocab_size": 1000,
         "max_position_embeddings": 2048, "model_type": "qwen3_vl_text", "rope_parameters": {"rope_type": "default", "rope_theta": 1000000.0,
         "mrope_section": [6, 5, 5], "mrope_interleaved": true}}, "vision_config": {"depth": 4, "hidden_size": 128, "intermediate_size": 256,
         "num_heads": 4, "out_hidden_size": 256, "patch_size": 14, "spatial_merge_size": 2, "temporal_patch_size": 2,
         "num_position_embeddings": 64, "deepstack_visual_indexes": [0, 1, 2]}})";

constexpr const char* kFlux =
    R"({"_class_name": "FluxTransformer2DModel", "num_attention_heads": 4, "attention_head_dim": 32, "num_layers": 2, "num_single_layers": 3,
         "in_channels": 64, "joint_attention_dim": 256, "pooled_projection_dim": 64, "guidance_embeds": true})";

struct Recorded {
  const char* what;
  const char* config;
  const char* training;            // beside what all have
  std::int64_t forward, backward;  // highest live bytes
  std::int64_t parameters;
};

const Recorded kRecorded[] = {
    {"Qwen2.5-VL", kQwen25Vl,
     R"("sequence_length": 128, "precision": "bf16", "gradient_checkpointing": "none", "image_size": 112, "num_images": 1)",
     21842432, 22349824, 3626304},
    {"Qwen2.5-VL, frozen tower and projector", kQwen25Vl,
     R"("sequence_length": 128, "precision": "bf16", "gradient_checkpointing": "none", "image_size": 112, "freeze": ["vision_tower", "projector"], "num_images": 1)",
     18199552, 18706944, 3626304},
    {"Qwen2.5-VL, checkpoints", kQwen25Vl,
     R"("sequence_length": 128, "precision": "bf16", "gradient_checkpointing": "full", "image_size": 112, "num_images": 1)",
     11449856, 14971904, 3626304},
    {"Qwen2-VL", kQwen2Vl,
     R"("sequence_length": 128, "precision": "bf16", "gradient_checkpointing": "none", "image_size": 112, "num_images": 1)",
     21395968, 21903360, 3622656},
    {"Qwen2-VL, frozen tower and projector", kQwen2Vl,
     R"("sequence_length": 128, "precision": "bf16", "gradient_checkpointing": "none", "image_size": 112, "freeze": ["vision_tower", "projector"], "num_images": 1)",
     18191872, 18699264, 3622656},
    {"Qwen2-VL, checkpoints", kQwen2Vl,
     R"("sequence_length": 128, "precision": "bf16", "gradient_checkpointing": "full", "image_size": 112, "num_images": 1)",
     11376128, 14957056, 3622656},
    {"PaliGemma", kPaligemma,
     R"("sequence_length": 128, "precision": "bf16", "gradient_checkpointing": "none", "image_size": 112, "num_images": 1)",
     19676672, 20169728, 2699648},
    {"PaliGemma, frozen tower and projector", kPaligemma,
     R"("sequence_length": 128, "precision": "bf16", "gradient_checkpointing": "none", "image_size": 112, "freeze": ["vision_tower", "projector"], "num_images": 1)",
     18016768, 18509824, 2699648},
    {"PaliGemma, checkpoints", kPaligemma,
     R"("sequence_length": 128, "precision": "bf16", "gradient_checkpointing": "full", "image_size": 112, "num_images": 1)",
     9754112, 12753408, 2699648},
    {"Gemma 3", kGemma3,
     R"("sequence_length": 128, "precision": "bf16", "gradient_checkpointing": "none", "image_size": 112, "num_images": 1)",
     43243008, 43785216, 4473984},
    {"Gemma 3, frozen tower and projector", kGemma3,
     R"("sequence_length": 128, "precision": "bf16", "gradient_checkpointing": "none", "image_size": 112, "freeze": ["vision_tower", "projector"], "num_images": 1)",
     41541120, 42083328, 4473984},
    {"Gemma 3, checkpoints", kGemma3,
     R"("sequence_length": 128, "precision": "bf16", "gradient_checkpointing": "full", "image_size": 112, "num_images": 1)",
     13744640, 22016000, 4473984},
    {"LLaVA with CLIP", kLlavaWithClip,
     R"("sequence_length": 128, "precision": "bf16", "gradient_checkpointing": "none", "image_size": 112, "num_images": 1)",
     18450944, 18892800, 2996224},
    {"LLaVA with CLIP, frozen tower and projector", kLlavaWithClip,
     R"("sequence_length": 128, "precision": "bf16", "gradient_checkpointing": "none", "image_size": 112, "freeze": ["vision_tower", "projector"], "num_images": 1)",
     16838144, 17280000, 2996224},
    {"LLaVA with CLIP, checkpoints", kLlavaWithClip,
     R"("sequence_length": 128, "precision": "bf16", "gradient_checkpointing": "full", "image_size": 112, "num_images": 1)",
     10025472, 12900864, 2996224},
    {"LLaVA with SigLIP", kLlavaWithSiglip,
     R"("sequence_length": 128, "precision": "bf16", "gradient_checkpointing": "none", "image_size": 112, "num_images": 1)",
     18593280, 19035136, 2995840},
    {"LLaVA with SigLIP, frozen tower and projector", kLlavaWithSiglip,
     R"("sequence_length": 128, "precision": "bf16", "gradient_checkpointing": "none", "image_size": 112, "freeze": ["vision_tower", "projector"], "num_images": 1)",
     16836096, 17277952, 2995840},
    {"LLaVA with SigLIP, checkpoints", kLlavaWithSiglip,
     R"("sequence_length": 128, "precision": "bf16", "gradient_checkpointing": "full", "image_size": 112, "num_images": 1)",
     10020352, 12895744, 2995840},
    {"Qwen3-VL", kQwen3Vl,
     R"("sequence_length": 128, "precision": "bf16", "gradient_checkpointing": "none", "image_size": 112, "num_images": 1)",
     28605440, 29112832, 5141888},
    {"Qwen3-VL, frozen tower and projector", kQwen3Vl,
     R"("sequence_length": 128, "precision": "bf16", "gradient_checkpointing": "none", "image_size": 112, "freeze": ["vision_tower", "projector"], "num_images": 1)",
     26145792, 26653184, 5141888},
    {"Qwen3-VL, checkpoints", kQwen3Vl,
     R"("sequence_length": 128, "precision": "bf16", "gradient_checkpointing": "full", "image_size": 112, "num_images": 1)",
     14855168, 21030912, 5141888},
    {"Flux, bf16", kFlux,
     R"("sequence_length": 64, "precision": "bf16", "gradient_checkpointing": "none", "image_size": 256)",
     22808064, 22888960, 2135424},
    {"Flux, bf16, checkpoints", kFlux,
     R"("sequence_length": 64, "precision": "bf16", "gradient_checkpointing": "full", "image_size": 256)",
     8021504, 11845632, 2135424},
    {"Flux, fp32", kFlux,
     R"("sequence_length": 64, "precision": "fp32", "gradient_checkpointing": "none", "image_size": 256)",
     45336064, 45496832, 2135424},
    {"Flux, fp32, checkpoints", kFlux,
     R"("sequence_length": 64, "precision": "fp32", "gradient_checkpointing": "full", "image_size": 256)",
     15273472, 23525376, 2135424},
};
// clang-format on

std::string job_of(const char* config, const std::string& training) {
  return recorded_job(config, R"("attention": "sdpa", )" + training);
}

TEST(RecordedPicturesTest, EachAllocatesWhatPyTorchAllocates) {
  for (const Recorded& recorded : kRecorded) {
    const DryRun done = run_recorded(job_of(recorded.config, recorded.training));
    EXPECT_EQ(done.parameter_count, recorded.parameters) << recorded.what;
    expect_recorded(peak_of(done, "forward"), recorded.forward, recorded.what);
    expect_recorded(peak_of(done, "backward"), recorded.backward, recorded.what);
  }
}

std::int64_t allocated(const char* config, const std::string& more) {
  return run_recorded(job_of(config, R"("precision": "bf16", "sequence_length": 128)" + more))
      .allocated_peak.count();
}

TEST(VisionLanguageTest, MorePicturesOrLargerOnesTakeMore) {
  const char* qwen = kQwen25Vl;
  const std::int64_t none = allocated(qwen, R"(, "num_images": 0)");
  const std::int64_t one = allocated(qwen, R"(, "num_images": 1, "image_size": 112)");
  EXPECT_LT(none, one);
  EXPECT_LT(one, allocated(qwen, R"(, "num_images": 2, "image_size": 112)"));
  EXPECT_LT(one, allocated(qwen, R"(, "num_images": 1, "image_size": [112, 224])"));
}

TEST(VisionLanguageTest, AFrozenTowerHasNeitherGradientsNorAdapters) {
  const std::string lora = R"(, "num_images": 1, "lora": {"rank": 4, "targets": ["q_proj"]})";
  const auto adapted = [&](const std::string& more) {
    return run_recorded(job_of(kLlavaWithClip,
                               R"("precision": "bf16", "sequence_length": 128)" + lora + more))
        .parameter_count;
  };
  // PEFT goes by names: CLIP's queries are q_proj too, four layers of 4 * (128 + 128).
  EXPECT_EQ(adapted("") - adapted(R"(, "freeze": ["vision_tower"])"), 4 * 4 * 256);
  EXPECT_LT(allocated(kLlavaWithClip, R"(, "freeze": ["vision_tower"])"),
            allocated(kLlavaWithClip, ""));
}

TEST(VisionLanguageTest, TargetsMeanTheTowersLayersOnlyAsTheLibrarySpellsThem) {
  const auto count = [](const char* target) {
    return run_recorded(
               job_of(kQwen25Vl, std::string(R"("precision": "bf16", "sequence_length": 128,
        "image_size": 112, "lora": {"rank": 4, "targets": [")") +
                                     target + R"("]})"))
        .parameter_count;
  };
  const std::int64_t base = 3626304;
  EXPECT_EQ(count("q_proj") - base, 3 * 4 * (256 + 256));   // the tower's is called qkv
  EXPECT_EQ(count("qkv") - base, 4 * 4 * (128 + 3 * 128));  // and has four layers
}

TEST(VisionLanguageTest, PicturesThatDoNotFitIntoTheSequenceAreRefused) {
  try {
    run_recorded(job_of(kLlavaWithClip, R"("precision": "bf16", "sequence_length": 64)"));
    FAIL() << "64 tokens of images were put into 64 places";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("1 image in a sample takes 64 tokens"),
              std::string::npos)
        << error.what();
  }
}

}  // namespace
}  // namespace memfathom

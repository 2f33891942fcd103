// Families: the makers of all model families and their rows of the registry.
//
// To add a family, define its maker in a file of its own under families/, declare it here and add a
// row per model_type or _class_name (docs/adding-a-model.md). Families whose models are Llama's
// with differences have their rows in blocks/llama/llama_variant.cc instead.
#pragma once

#include "estimator/models/blocks/model_family.h"

namespace memfathom {

// Language models of transformers.
ModelMaker make_bart;
ModelMaker make_bert;
ModelMaker make_bloom;
ModelMaker make_deberta;
ModelMaker make_falcon;
ModelMaker make_gpt2;
ModelMaker make_gpt_neo;
ModelMaker make_gpt_neox;
ModelMaker make_gptj;
ModelMaker make_lfm2;
ModelMaker make_modernbert;
ModelMaker make_mpt;
ModelMaker make_opt;
ModelMaker make_phi;
ModelMaker make_qwen;
ModelMaker make_t5;

// LitGPT's code for the models of several families above and of Llama.
ModelMaker make_litgpt;

// Image models of torchvision and timm, which publish no configurations: the keys are ours.
ModelMaker make_classifier;

// Of its authors' own code.
ModelMaker make_vggt;

// Image models of transformers.
ModelMaker make_beit;
ModelMaker make_clip;
ModelMaker make_convnext_model;
ModelMaker make_dinov2;
ModelMaker make_dinov3;
ModelMaker make_siglip;
ModelMaker make_swin_model;
ModelMaker make_vision_transformer;

// Models of diffusers.
ModelMaker make_autoencoder;
ModelMaker make_cogvideox;
ModelMaker make_dit;
ModelMaker make_flux;
ModelMaker make_unet;
ModelMaker make_video_autoencoder;

// Audio models of transformers.
ModelMaker make_wav2vec2;

// Images for language models.
ImageSourceMaker make_projected_images;  // LLaVA, Gemma 3, PaliGemma
ImageSourceMaker make_qwen_images;       // Qwen2-VL, Qwen2.5-VL, Qwen3-VL
bool has_projected_images(const Node& config);

// memfathom's own.
ModelMaker make_builtin_family;

inline constexpr LoraTargets kQueryKeyValue{"query_key_value", ""};
inline constexpr LoraTargets kQueryAndValue{"query", "value"};
inline constexpr LoraTargets kToQueryAndValue{"to_q", "to_v"};
inline constexpr PositionLimit kPositionTable{.is_table = true};
inline constexpr PositionLimit kPaddedPositionTable{.reserved = 2, .is_table = true};
inline constexpr ImageTraits kProjectedImages{make_projected_images, has_projected_images};
inline constexpr ImageTraits kQwenImages{.make = make_qwen_images, .any_size = true};

// clang-format off
inline constexpr ModelFamily kModelFamilies[] = {
    {"albert", ModelKind::kLanguage, make_bert, {.lora_targets = kQueryAndValue, .positions = kPositionTable}},
    {"bart", ModelKind::kLanguage, make_bart, {.has_own_head_only = true}},
    {"bert", ModelKind::kLanguage, make_bert, {.lora_targets = kQueryAndValue, .positions = kPositionTable}},
    {"blenderbot", ModelKind::kLanguage, make_bart, {.positions = kPositionTable, .has_own_head_only = true}},
    {"blenderbot-small", ModelKind::kLanguage, make_bart, {.positions = kPositionTable, .has_own_head_only = true}},
    {"bloom", ModelKind::kLanguage, make_bloom, {.lora_targets = kQueryKeyValue}},
    {"camembert", ModelKind::kLanguage, make_bert, {.lora_targets = kQueryAndValue, .positions = kPaddedPositionTable}},
    {"codegen", ModelKind::kLanguage, make_gptj, {.lora_targets = {"qkv_proj", ""}, .positions = {.key = "n_positions", .is_table = true}}},
    {"data2vec-text", ModelKind::kLanguage, make_bert, {.lora_targets = kQueryAndValue, .positions = kPaddedPositionTable}},
    {"deberta-v2", ModelKind::kLanguage, make_deberta, {.lora_targets = {"query_proj", "value_proj"}}},
    {"distilbert", ModelKind::kLanguage, make_bert, {.lora_targets = {"q_lin", "v_lin"}, .positions = kPositionTable}},
    {"electra", ModelKind::kLanguage, make_bert, {.lora_targets = kQueryAndValue}},
    {"ernie", ModelKind::kLanguage, make_bert, {.lora_targets = kQueryAndValue, .positions = kPositionTable}},
    {"falcon", ModelKind::kLanguage, make_falcon, {.lora_targets = kQueryKeyValue}},
    {"gpt2", ModelKind::kLanguage, make_gpt2, {.lora_targets = {"c_attn", ""}, .positions = {.key = "n_positions", .is_table = true}}},
    {"gpt_bigcode", ModelKind::kLanguage, make_gpt2, {.lora_targets = {"c_attn", ""}}},
    {"gpt_neo", ModelKind::kLanguage, make_gpt_neo, {.positions = kPositionTable}},
    {"gptj", ModelKind::kLanguage, make_gptj, {.positions = {.key = "n_positions", .is_table = true}}},
    {"gpt_neox", ModelKind::kLanguage, make_gpt_neox, {.lora_targets = kQueryKeyValue}},
    {"lfm2", ModelKind::kLanguage, make_lfm2, {.since = {4, 54}}},
    {"m2m_100", ModelKind::kLanguage, make_bart, {.has_own_head_only = true}},
    {"marian", ModelKind::kLanguage, make_bart, {.positions = kPositionTable, .has_own_head_only = true}},
    {"mbart", ModelKind::kLanguage, make_bart, {.has_own_head_only = true}},
    {"modernbert", ModelKind::kLanguage, make_modernbert, {.lora_targets = {"Wqkv", ""}}},
    {"mpt", ModelKind::kLanguage, make_mpt, {.lora_targets = {"Wqkv", ""}, .positions = {.key = "max_seq_len", .is_table = true}}},
    {"mt5", ModelKind::kLanguage, make_t5, {.lora_targets = {"q", "v"}, .has_own_head_only = true}},
    {"opt", ModelKind::kLanguage, make_opt, {.positions = kPositionTable}},
    {"pegasus", ModelKind::kLanguage, make_bart, {.positions = kPositionTable, .has_own_head_only = true}},
    {"phi", ModelKind::kLanguage, make_phi, {.lora_targets = {"q_proj", "v_proj", "fc1", "fc2"}}},
    {"plbart", ModelKind::kLanguage, make_bart, {.positions = kPositionTable, .has_own_head_only = true}},
    {"qwen", ModelKind::kLanguage, make_qwen, {.lora_targets = {"c_attn", ""}}},
    {"roberta", ModelKind::kLanguage, make_bert, {.lora_targets = kQueryAndValue, .positions = kPaddedPositionTable}},
    {"t5", ModelKind::kLanguage, make_t5, {.lora_targets = {"q", "v"}, .has_own_head_only = true}},
    {"whisper", ModelKind::kLanguage, make_bart, {.has_own_head_only = true}},
    {"xlm-roberta", ModelKind::kLanguage, make_bert, {.lora_targets = kQueryAndValue, .positions = kPaddedPositionTable}},

    {"beit", ModelKind::kVision, make_beit, {}},
    {"clip", ModelKind::kVision, make_clip, {}},
    {"clip_text_model", ModelKind::kVision, make_clip, {}},
    {"clip_vision_model", ModelKind::kVision, make_clip, {}},
    {"convnext", ModelKind::kVision, make_convnext_model, {.lora_targets = {"pwconv1", "pwconv2"}}},
    {"convnextv2", ModelKind::kVision, make_convnext_model, {.lora_targets = {"pwconv1", "pwconv2"}}},
    {"deit", ModelKind::kVision, make_vision_transformer, {}},
    {"dinov2", ModelKind::kVision, make_dinov2, {}},
    {"dinov2_with_registers", ModelKind::kVision, make_dinov2, {}},
    {"dinov3_vit", ModelKind::kVision, make_dinov3, {}},
    {"ijepa", ModelKind::kVision, make_vision_transformer, {}},
    {"siglip", ModelKind::kVision, make_siglip, {}},
    {"siglip_text_model", ModelKind::kVision, make_siglip, {}},
    {"siglip_vision_model", ModelKind::kVision, make_siglip, {}},
    {"swin", ModelKind::kVision, make_swin_model, {}},
    {"vit", ModelKind::kVision, make_vision_transformer, {}},
    {"vit_msn", ModelKind::kVision, make_vision_transformer, {}},

    {"timm_mixer", ModelKind::kVision, make_classifier, {.is_classifier = true}},
    {"timm_vit", ModelKind::kVision, make_classifier, {.lora_targets = {"qkv", ""}, .is_classifier = true}},
    {"torchvision_alexnet", ModelKind::kVision, make_classifier, {.is_classifier = true}},
    {"torchvision_convnext", ModelKind::kVision, make_classifier, {.is_classifier = true}},
    {"torchvision_densenet", ModelKind::kVision, make_classifier, {.is_classifier = true}},
    {"torchvision_efficientnet", ModelKind::kVision, make_classifier, {.is_classifier = true}},
    {"torchvision_efficientnet_v2", ModelKind::kVision, make_classifier, {.is_classifier = true}},
    {"torchvision_googlenet", ModelKind::kVision, make_classifier, {.is_classifier = true}},
    {"torchvision_inception_v3", ModelKind::kVision, make_classifier, {.is_classifier = true}},
    {"torchvision_mobilenet_v2", ModelKind::kVision, make_classifier, {.is_classifier = true}},
    {"torchvision_mobilenet_v3", ModelKind::kVision, make_classifier, {.is_classifier = true}},
    {"torchvision_resnet", ModelKind::kVision, make_classifier, {.is_classifier = true}},
    {"torchvision_squeezenet", ModelKind::kVision, make_classifier, {.is_classifier = true}},
    {"torchvision_swin", ModelKind::kVision, make_classifier, {.is_classifier = true}},
    {"torchvision_vgg", ModelKind::kVision, make_classifier, {.is_classifier = true}},
    {"torchvision_vit", ModelKind::kVision, make_classifier, {.lora_targets = {"qkv", ""}, .is_classifier = true}},
    {"vggt", ModelKind::kVision, make_vggt, {}},

    {"hubert", ModelKind::kAudio, make_wav2vec2, {}},
    {"wav2vec2", ModelKind::kAudio, make_wav2vec2, {}},

    {"AutoencoderKL", ModelKind::kDiffusion, make_autoencoder, {.lora_targets = kToQueryAndValue}, AutoencoderInput::kImages},
    {"AutoencoderKLCogVideoX", ModelKind::kDiffusion, make_video_autoencoder, {.lora_targets = kToQueryAndValue}, AutoencoderInput::kVideos},
    {"CogVideoXTransformer3DModel", ModelKind::kDiffusion, make_cogvideox, {.lora_targets = kToQueryAndValue}},
    {"DiTTransformer2DModel", ModelKind::kDiffusion, make_dit, {.lora_targets = kToQueryAndValue}},
    {"FluxTransformer2DModel", ModelKind::kDiffusion, make_flux, {.lora_targets = kToQueryAndValue}},
    {"UNet2DConditionModel", ModelKind::kDiffusion, make_unet, {.lora_targets = kToQueryAndValue}},
    {"UNet2DModel", ModelKind::kDiffusion, make_unet, {.lora_targets = kToQueryAndValue}},

    // Gemma 3 is a language model that can read images; the others are used for it.
    {"gemma3", ModelKind::kMultimodal, nullptr, {.since = {4, 50}}, {}, {make_projected_images, has_projected_images, 0}},
    {"llava", ModelKind::kMultimodal, nullptr, {.since = {4, 36}}, {}, kProjectedImages},
    {"paligemma", ModelKind::kMultimodal, nullptr, {.since = {4, 41}}, {}, kProjectedImages},
    {"qwen2_vl", ModelKind::kMultimodal, nullptr, {.since = {4, 45}}, {}, kQwenImages},
    {"qwen2_5_vl", ModelKind::kMultimodal, nullptr, {.since = {4, 49}}, {}, kQwenImages},
    {"qwen3_vl", ModelKind::kMultimodal, nullptr, {.since = {4, 57}}, {}, kQwenImages},
    {"qwen3_vl_moe", ModelKind::kMultimodal, nullptr, {.since = {4, 57}}, {}, kQwenImages},

    {"cnn", ModelKind::kBuiltin, make_builtin_family, {}},
    {"fno", ModelKind::kBuiltin, make_builtin_family, {}},
    {"mlp", ModelKind::kBuiltin, make_builtin_family, {}},
    {"unet", ModelKind::kBuiltin, make_builtin_family, {}},
};
// clang-format on

}  // namespace memfathom

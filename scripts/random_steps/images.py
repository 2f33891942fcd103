"""Models that read text and images: configurations to draw from; image_batches.py shows them images."""

TEXT = {"model_type": "llama", "hidden_size": 128, "intermediate_size": 256, "num_hidden_layers": 3, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 32, "vocab_size": 1000,
        "max_position_embeddings": 2048}
VISION = {"model_type": "clip_vision_model", "hidden_size": 96, "intermediate_size": 192, "num_hidden_layers": 3, "num_attention_heads": 4, "image_size": 112, "patch_size": 14, "projection_dim": 64}
SIGLIP = {**{k: v for k, v in VISION.items() if k != "projection_dim"}, "model_type": "siglip_vision_model", "vision_use_head": False}
ROTARY = {"rope_parameters": {"rope_type": "default", "rope_theta": 1000000.0, "mrope_section": [4, 6, 6]}}
QWEN = {"depth": 3, "num_heads": 4, "patch_size": 14, "spatial_merge_size": 2, "temporal_patch_size": 2}
TOWER = {"hidden_size": 96, "intermediate_size": 192, "num_hidden_layers": 3, "num_attention_heads": 4}
IMAGE_TOKEN = 5


def model(kind, name, text, vision, **more):
    return {"name": kind, "config": {"model_type": kind, "architectures": [name], "text_config": text, "vision_config": vision, **more}, "input": {"tokens": 256, "image": [112, 112]}, "lora_targets": ["q_proj", "v_proj"]}


CONFIGS = [
    model("llava", "LlavaForConditionalGeneration", TEXT, VISION, image_token_index=IMAGE_TOKEN),
    model("llava", "LlavaForConditionalGeneration", TEXT, SIGLIP, image_token_index=IMAGE_TOKEN, vision_feature_layer=-1, vision_feature_select_strategy="full"),
    model("paligemma", "PaliGemmaForConditionalGeneration", TEXT | {"model_type": "gemma"}, SIGLIP | {"projection_dim": 128}, image_token_index=IMAGE_TOKEN, projection_dim=128),
    model("gemma3", "Gemma3ForConditionalGeneration", TEXT | {"model_type": "gemma3_text", "sliding_window": 64}, SIGLIP, mm_tokens_per_image=16, image_token_index=IMAGE_TOKEN),
    model("qwen2_vl", "Qwen2VLForConditionalGeneration", TEXT | ROTARY | {"model_type": "qwen2_vl_text"}, QWEN | {"embed_dim": 96, "mlp_ratio": 4, "hidden_size": 128}, image_token_id=IMAGE_TOKEN,
          vision_start_token_id=6, vision_end_token_id=7, video_token_id=8),
    model("qwen2_5_vl", "Qwen2_5_VLForConditionalGeneration", TEXT | ROTARY | {"model_type": "qwen2_5_vl_text"},
          QWEN | {"hidden_size": 96, "intermediate_size": 256, "out_hidden_size": 128, "window_size": 56, "fullatt_block_indexes": [1]}, image_token_id=IMAGE_TOKEN, vision_start_token_id=6, vision_end_token_id=7,
          video_token_id=8),
    model("clip", "CLIPModel", TOWER | {"vocab_size": 1000, "max_position_embeddings": 77}, TOWER | {"image_size": 112, "patch_size": 14}, projection_dim=64),
    model("siglip", "SiglipModel", TOWER | {"vocab_size": 1000, "max_position_embeddings": 64}, TOWER | {"image_size": 112, "patch_size": 14}),
]
TWO_TOWERS = {"clip": 77, "siglip": 64}

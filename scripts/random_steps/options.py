"""Options of configurations and of training loops that few checkpoints and scripts set: drawn on top of what draw.py draws."""
import random

DROPOUT = (0.0, 0.1)
ACTIVATIONS = ("gelu", "gelu_new", "relu", "silu", "gelu_pytorch_tanh", "quick_gelu", "relu2")
COMMON = {"hidden_act": ACTIVATIONS, "attention_dropout": DROPOUT}
BIASED = {"attention_bias": (True, False)}
ENCODER = {"hidden_act": ACTIVATIONS, "hidden_dropout_prob": DROPOUT, "attention_probs_dropout_prob": DROPOUT}
GPT = {"resid_pdrop": DROPOUT, "embd_pdrop": DROPOUT, "attn_pdrop": DROPOUT, "activation_function": ACTIVATIONS, "n_inner": (None, 300)}
TWO_SIDED = {"dropout": DROPOUT, "attention_dropout": DROPOUT, "activation_dropout": DROPOUT, "scale_embedding": (True, False), "activation_function": ACTIVATIONS, "encoder_ffn_dim": (256, 300), "decoder_ffn_dim": (256, 384),
             "encoder_attention_heads": (2, 4, 8), "decoder_attention_heads": (2, 4, 8), "tie_word_embeddings": (True, False), "d_model": (128, 192, 320)}
WINDOWS = {"use_sliding_window": (True, False), "sliding_window": (32, 64), "max_window_layers": (0, 1, 2)}
SPARSE = {"num_experts_per_tok": (1, 2, 4), "norm_topk_prob": (True, False), "decoder_sparse_step": (1, 2), "mlp_only_layers": ([], [0]), "output_router_logits": (True, False)}
ROUTED = {"n_shared_experts": (1, 2), "num_experts_per_tok": (1, 2, 4), "first_k_dense_replace": (0, 1, 2), "norm_topk_prob": (True, False), "attention_bias": (True, False)}
MULTIPLIED = {"embedding_multiplier": (1.0, 12.0), "logits_scaling": (1.0, 8.0), "residual_multiplier": (1.0, 0.22), "attention_multiplier": (1.0, 0.0625)}

OPTIONS = {
    "albert": ENCODER | {"num_hidden_groups": (1, 2), "inner_group_num": (1, 2), "classifier_dropout_prob": DROPOUT, "embedding_size": (64, 128)},
    "arcee": COMMON | BIASED | {"mlp_bias": (True, False), "head_dim": (20, 36, 48)},
    "bart": TWO_SIDED, "blenderbot": TWO_SIDED, "blenderbot-small": TWO_SIDED, "m2m_100": TWO_SIDED, "marian": TWO_SIDED, "mbart": TWO_SIDED, "pegasus": TWO_SIDED, "plbart": TWO_SIDED,
    "beit": ENCODER | {"use_relative_position_bias": (True, False), "use_absolute_position_embeddings": (True, False), "layer_scale_init_value": (0.1, 0), "drop_path_rate": (0.0, 0.1), "use_mean_pooling": (True, False)},
    "bert": ENCODER | {"classifier_dropout": (None, 0.2), "type_vocab_size": (1, 2), "tie_word_embeddings": (True, False)},
    "bloom": {"hidden_dropout": DROPOUT, "attention_dropout": DROPOUT, "apply_residual_connection_post_layernorm": (True, False), "n_head": (2, 4)},
    "cohere": COMMON | BIASED | {"use_qk_norm": (True, False), "logit_scale": (0.0625, 1.0)},
    "cohere2": COMMON | BIASED | {"logit_scale": (0.0625, 1.0), "sliding_window": (32, 128)},
    "convnext": {"hidden_act": ACTIVATIONS, "drop_path_rate": (0.0, 0.1), "layer_scale_init_value": (1e-6, 0)},
    "convnextv2": {"hidden_act": ACTIVATIONS, "drop_path_rate": (0.0, 0.1)},
    "cwm": COMMON | {"sliding_window": (32, 128)},
    "data2vec-text": ENCODER | {"classifier_dropout": (None, 0.2)},
    "deberta-v2": ENCODER | {"relative_attention": (True, False), "share_att_key": (True, False), "pos_att_type": (["p2c", "c2p"], ["c2p"], ["p2c"]), "position_biased_input": (True, False), "type_vocab_size": (0, 2)},
    "deepseek_v2": COMMON | ROUTED | {"q_lora_rank": (None, 48), "topk_method": ("greedy", "group_limited_greedy"), "n_group": (1, 2, 4)},
    "deepseek_v3": COMMON | ROUTED | {"q_lora_rank": (None, 48), "rope_interleave": (True, False), "n_group": (1, 2, 4)},
    "deit": ENCODER | {"qkv_bias": (True, False)},
    "dinov2": ENCODER | {"qkv_bias": (True, False), "use_swiglu_ffn": (True, False), "drop_path_rate": (0.0, 0.1), "patch_size": (14, 8), "layerscale_value": (1.0, 1e-5)},
    "dinov2_with_registers": ENCODER | {"qkv_bias": (True, False), "use_swiglu_ffn": (True, False), "num_register_tokens": (1, 4)},
    "dinov3_vit": {"hidden_act": ACTIVATIONS, "attention_dropout": DROPOUT, "key_bias": (True, False), "mlp_bias": (True, False), "use_gated_mlp": (True, False), "num_register_tokens": (0, 4), "drop_path_rate": (0.0, 0.1)},
    "distilbert": {"dropout": DROPOUT, "attention_dropout": DROPOUT, "activation": ("gelu", "relu"), "sinusoidal_pos_embds": (True, False), "tie_word_embeddings": (True, False)},
    "dots1": COMMON | ROUTED,
    "electra": ENCODER | {"embedding_size": (64, 128), "classifier_dropout": (None, 0.2), "type_vocab_size": (1, 2)},
    "ernie": ENCODER | {"type_vocab_size": (1, 4)},
    "ernie4_5": COMMON | {"use_bias": (True, False), "head_dim": (32, 48)},
    "exaone4": COMMON | {"sliding_window": (32, None)},
    "falcon": {"alibi": (True, False), "bias": (True, False), "parallel_attn": (True, False), "multi_query": (True, False), "hidden_dropout": DROPOUT, "attention_dropout": DROPOUT, "activation": ("gelu", "relu"), "ffn_hidden_size": (512, 300),
               "num_ln_in_parallel_attn": (None, 1, 2)},
    "flex_olmo": COMMON | BIASED | {"output_router_logits": (True, False), "norm_topk_prob": (True, False), "num_experts_per_tok": (1, 2)},
    "gemma": COMMON | BIASED | {"head_dim": (20, 32, 64), "attention_dropout": DROPOUT},
    "gemma2": BIASED | {"attention_dropout": DROPOUT, "final_logit_softcapping": (None, 30.0), "attn_logit_softcapping": (None, 50.0), "head_dim": (32, 64), "hidden_activation": ACTIVATIONS},
    "gemma3_text": BIASED | {"attention_dropout": DROPOUT, "final_logit_softcapping": (None, 30.0), "head_dim": (32, 64), "sliding_window_pattern": (2, 3), "use_bidirectional_attention": (True, False)},
    "glm": COMMON | BIASED | {"head_dim": (32, 48)},
    "glm4": COMMON | BIASED | {"head_dim": (32, 48)},
    "glm4_moe": COMMON | ROUTED | {"use_qk_norm": (True, False)},
    "gpt2": GPT | {"scale_attn_by_inverse_layer_idx": (True, False), "reorder_and_upcast_attn": (True, False), "scale_attn_weights": (True, False), "tie_word_embeddings": (True, False)},
    "gpt_bigcode": GPT | {"multi_query": (True, False), "attention_softmax_in_fp32": (True, False), "scale_attention_softmax_in_fp32": (True, False), "scale_attn_weights": (True, False)},
    "gpt_neo": {"resid_dropout": DROPOUT, "embed_dropout": DROPOUT, "attention_dropout": DROPOUT, "window_size": (32, 64), "activation_function": ACTIVATIONS},
    "gpt_neox": {"attention_dropout": DROPOUT, "hidden_dropout": DROPOUT, "use_parallel_residual": (True, False), "attention_bias": (True, False), "hidden_act": ACTIVATIONS, "rotary_pct": (0.25, 1.0)},
    "gpt_oss": {"attention_dropout": DROPOUT, "num_experts_per_tok": (1, 2, 4), "output_router_logits": (True, False), "attention_bias": (True, False)},
    "gptj": {key: GPT[key] for key in GPT if key != "n_inner"} | {"rotary_dim": (8, 16)},
    "codegen": {key: GPT[key] for key in GPT if key != "n_inner"},
    "granite": COMMON | BIASED | MULTIPLIED | {"mlp_bias": (True, False)},
    "granitemoe": COMMON | BIASED | MULTIPLIED | {"output_router_logits": (True, False), "num_experts_per_tok": (1, 2)},
    "granitemoeshared": COMMON | BIASED | MULTIPLIED | {"output_router_logits": (True, False), "shared_intermediate_size": (0, 128)},
    "helium": COMMON | BIASED | {"mlp_bias": (True, False), "head_dim": (32, 48)},
    "hubert": {"hidden_dropout": DROPOUT, "attention_dropout": DROPOUT, "activation_dropout": DROPOUT, "do_stable_layer_norm": (True, False), "feat_extract_norm": ("group", "layer"), "conv_bias": (True, False)},
    "hunyuan_v1_dense": COMMON | BIASED | {"head_dim": (32, 48)},
    "ijepa": ENCODER | {"qkv_bias": (True, False)},
    "kimi_k2": COMMON | ROUTED | {"q_lora_rank": (None, 48), "n_group": (1, 2, 4)},
    "llama": COMMON | BIASED | {"mlp_bias": (True, False), "head_dim": (20, 36, 48, 80, 96, 128)},
    "ministral": COMMON | {"sliding_window": (32, None)},
    "ministral3": COMMON | {"sliding_window": (32, None)},
    "mistral": COMMON | {"sliding_window": (32, None, 512), "head_dim": (20, 36, 48, 80, 128)},
    "mixtral": COMMON | {"num_experts_per_tok": (1, 2, 4), "output_router_logits": (True, False), "sliding_window": (None, 64), "router_jitter_noise": (0.0, 0.1), "num_local_experts": (4, 8)},
    "modernbert": {"hidden_activation": ACTIVATIONS, "attention_dropout": DROPOUT, "mlp_dropout": DROPOUT, "embedding_dropout": DROPOUT, "attention_bias": (True, False), "mlp_bias": (True, False), "norm_bias": (True, False), "classifier_pooling": ("cls", "mean"),
                   "global_attn_every_n_layers": (1, 2, 3), "local_attention": (16, 64), "decoder_bias": (True, False), "tie_word_embeddings": (True, False)},
    "mpt": {"no_bias": (True, False), "resid_pdrop": DROPOUT, "emb_pdrop": DROPOUT, "expansion_ratio": (2, 4)},
    "mt5": {"dropout_rate": DROPOUT, "feed_forward_proj": ("gated-gelu", "relu", "gated-silu"), "d_kv": (16, 32, 40), "num_decoder_layers": (2, 4), "tie_word_embeddings": (True, False)},
    "t5": {"dropout_rate": DROPOUT, "feed_forward_proj": ("gated-gelu", "relu", "gated-silu"), "d_kv": (16, 32, 40), "num_decoder_layers": (2, 4), "tie_word_embeddings": (True, False)},
    "nemotron": COMMON | BIASED | {"mlp_bias": (True, False), "head_dim": (20, 32)},
    "olmo": COMMON | BIASED, "olmo2": COMMON | BIASED, "olmo3": COMMON | BIASED,
    "olmoe": COMMON | BIASED | {"output_router_logits": (True, False), "norm_topk_prob": (True, False), "num_experts_per_tok": (1, 2)},
    "opt": {"dropout": DROPOUT, "attention_dropout": DROPOUT, "activation_function": ACTIVATIONS, "do_layer_norm_before": (True, False), "word_embed_proj_dim": (128, 64), "enable_bias": (True, False)},
    "phi": {"resid_pdrop": DROPOUT, "embd_pdrop": DROPOUT, "attention_dropout": DROPOUT, "hidden_act": ACTIVATIONS, "qk_layernorm": (True, False), "partial_rotary_factor": (0.5, 1.0)},
    "phi3": {"resid_pdrop": DROPOUT, "embd_pdrop": DROPOUT, "attention_dropout": DROPOUT, "hidden_act": ACTIVATIONS, "sliding_window": (None, 64), "partial_rotary_factor": (0.5, 1.0)},
    "qwen2": COMMON | WINDOWS,
    "qwen2_moe": COMMON | SPARSE | {"qkv_bias": (True, False)},
    "qwen3": COMMON | BIASED | WINDOWS | {"head_dim": (32, 36, 64, 128)},
    "qwen3_moe": COMMON | BIASED | SPARSE,
    "roberta": ENCODER | {"classifier_dropout": (None, 0.2), "type_vocab_size": (1, 2), "tie_word_embeddings": (True, False)},
    "seed_oss": COMMON | BIASED | {"attention_out_bias": (True, False), "residual_dropout": DROPOUT, "mlp_bias": (True, False)},
    "siglip_vision_model": {"hidden_act": ACTIVATIONS, "attention_dropout": DROPOUT, "vision_use_head": (True, False), "patch_size": (14, 16)},
    "clip_vision_model": {"hidden_act": ACTIVATIONS, "attention_dropout": DROPOUT, "patch_size": (14, 16)},
    "smollm3": COMMON | BIASED | {"mlp_bias": (True, False), "no_rope_layer_interval": (2, 4), "use_sliding_window": (True, False), "sliding_window": (32, 64)},
    "stablelm": COMMON | {"use_qkv_bias": (True, False), "qk_layernorm": (True, False), "use_parallel_residual": (True, False), "hidden_dropout": DROPOUT, "partial_rotary_factor": (0.25, 0.5)},
    "starcoder2": COMMON | {"residual_dropout": DROPOUT, "embedding_dropout": DROPOUT, "use_bias": (True, False), "sliding_window": (None, 64)},
    "swin": {"hidden_act": ACTIVATIONS, "drop_path_rate": (0.0, 0.1), "qkv_bias": (True, False), "use_absolute_embeddings": (True, False), "hidden_dropout_prob": DROPOUT, "attention_probs_dropout_prob": DROPOUT, "mlp_ratio": (2.0, 4.0)},
    "vit": ENCODER | {"qkv_bias": (True, False)}, "vit_msn": ENCODER | {"qkv_bias": (True, False)},
    "wav2vec2": {"hidden_dropout": DROPOUT, "attention_dropout": DROPOUT, "activation_dropout": DROPOUT, "do_stable_layer_norm": (True, False), "feat_extract_norm": ("group", "layer"), "conv_bias": (True, False)},
    "whisper": {key: choices for key, choices in TWO_SIDED.items() if key != "tie_word_embeddings"} | {"num_mel_bins": (80, 128)},
}
LLAMA_TARGETS = ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")


def vary_config(rng, config):
    """Some of the options that the configuration's family has."""
    options = OPTIONS.get(config["model_type"], {})
    for key in sorted(options):
        if rng.random() < 0.3:
            config[key] = rng.choice(options[key])


def vary_head(rng, config):
    """How many classes, and of which kind."""
    if "ForSequenceClassification" in config["architectures"][0] or "ForTokenClassification" in config["architectures"][0]:
        if rng.random() < 0.5:
            config["num_labels"] = rng.choice((2, 3, 17))


def vary_training(rng, family, training):
    """Ways of a training loop and of its batches; of a decoder's, what the script keeps of an output."""
    config, is_text = family["config"], "tokens" in family["input"]
    if training["mode"] != "train":
        return
    if rng.random() < 0.1:
        training["zero_grad"] = "in_place"
    if is_text and rng.random() < 0.3:
        training["padding_mask"] = True
    if rng.random() < 0.15:
        training["hold_output"] = True
    if is_text and "ForCausalLM" in config["architectures"][0] and "label_smoothing" not in training and rng.random() < 0.25:
        training["use_cache"] = True
    lora = training.get("lora")
    if lora and family["lora_targets"][:1] == ["q_proj"] and "ForCausalLM" in config["architectures"][0] and rng.random() < 0.6:
        lora["targets"] = [name for name in LLAMA_TARGETS if rng.random() < 0.5] or ["o_proj"]


def vary(seed, family, training):
    """Half of the jobs have some options; what draw.py drew for a seed stays."""
    rng = random.Random(f"options of {seed}")
    if rng.random() < 0.5:
        vary_config(rng, family["config"])
        vary_head(rng, family["config"])
        vary_training(rng, family, training)

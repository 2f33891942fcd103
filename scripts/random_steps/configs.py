"""Configurations that random steps are drawn from: those of tests/data/families and the families that have no file there."""
import importlib.machinery
import importlib.util
import os

SCRIPTS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
MAX_PARAMETERS = 10_000_000  # of a family's file: larger ones are full-size models
HEADS = ("ForCausalLM", "ForSequenceClassification", "ForTokenClassification", "ForQuestionAnswering")
# Heads that transformers has no class of.
NO_TASK = ("SequenceClassification", "TokenClassification", "QuestionAnswering")
LACKING = dict.fromkeys(("codegen", "cohere", "cohere2", "cwm", "dots1", "ernie4_5", "flex_olmo", "glm4_moe", "granite", "granitemoe", "granitemoeshared", "lfm2", "olmoe"), NO_TASK)
LACKING |= dict.fromkeys(("deepseek_v2", "gemma3_text", "hunyuan_v1_dense", "olmo", "olmo2", "olmo3"), NO_TASK[1:])
LACKING |= dict.fromkeys(("deepseek_v3", "gemma", "gemma2", "glm", "glm4", "gpt_bigcode", "gpt_oss", "helium", "phi", "phi3", "stablelm", "starcoder2"), NO_TASK[2:])
LACKING |= dict.fromkeys(("gptj", "opt"), NO_TASK[1:2])
OWN_HEADS = ("bart", "blenderbot", "blenderbot-small", "m2m_100", "marian", "mbart", "mt5", "pegasus", "plbart", "t5", "whisper")


def script(name):
    """A script of this folder as a module."""
    loader = importlib.machinery.SourceFileLoader(name.replace("-", "_").removesuffix(".py"), os.path.join(SCRIPTS, name))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(loader.name, loader))
    loader.exec_module(module)
    return module


def text(kind, name, targets=("q_proj", "v_proj"), **more):
    config = {"hidden_size": 128, "num_hidden_layers": 3, "num_attention_heads": 4, "num_key_value_heads": 2, "intermediate_size": 256, "vocab_size": 1000, "pad_token_id": 0}
    config.update(more)
    return {"name": kind, "config": {"model_type": kind, "architectures": [name], **{k: v for k, v in config.items() if v is not None}}, "input": {"tokens": 256}, "lora_targets": list(targets)}


def image(kind, name, targets=("q_proj", "v_proj"), **more):
    config = {"hidden_size": 128, "num_hidden_layers": 3, "num_attention_heads": 4, "intermediate_size": 256, "image_size": 112, "patch_size": 14, "num_labels": 10}
    config.update(more)
    return {"name": kind, "config": {"model_type": kind, "architectures": [name], **{k: v for k, v in config.items() if v is not None}}, "input": {"image": [112, 112]}, "lora_targets": list(targets)}


EXPERTS = {"num_experts_per_tok": 2, "moe_intermediate_size": 64}
LATENT = {"num_key_value_heads": 4, "kv_lora_rank": 32, "q_lora_rank": 48, "qk_nope_head_dim": 32, "qk_rope_head_dim": 16, "v_head_dim": 32, "n_routed_experts": 8, "n_shared_experts": 1,
          "first_k_dense_replace": 1, "n_group": 1, "topk_group": 1, **EXPERTS}
NO_GROUPS = {"num_key_value_heads": None}
ENCODER = {"num_key_value_heads": None, "max_position_embeddings": 512}
SEQ2SEQ = {"hidden_size": None, "num_hidden_layers": None, "num_attention_heads": None, "num_key_value_heads": None, "intermediate_size": None}
TWO_SIDED = {**SEQ2SEQ, "d_model": 128, "encoder_layers": 2, "decoder_layers": 3, "encoder_attention_heads": 4, "decoder_attention_heads": 4, "encoder_ffn_dim": 256, "decoder_ffn_dim": 256, "max_position_embeddings": 512}
GPT2 = {**SEQ2SEQ, "n_embd": 128, "n_layer": 3, "n_head": 4, "n_positions": 512}

MORE = [
    text("bert", "BertForMaskedLM", ("query", "value"), **ENCODER),
    text("bloom", "BloomForCausalLM", ("query_key_value",), **SEQ2SEQ | {"hidden_size": 128, "n_layer": 3, "n_head": 4}),
    text("cohere", "CohereForCausalLM"),
    text("cohere2", "Cohere2ForCausalLM", sliding_window=64, head_dim=32),
    text("deberta-v2", "DebertaV2ForMaskedLM", ("query_proj", "value_proj"), **ENCODER, relative_attention=True, position_buckets=256, norm_rel_ebd="layer_norm", share_att_key=True,
         pos_att_type=["p2c", "c2p"], position_biased_input=False, type_vocab_size=0),
    text("deepseek_v2", "DeepseekV2ForCausalLM", ("q_b_proj", "kv_b_proj"), **LATENT),
    text("deepseek_v3", "DeepseekV3ForCausalLM", ("q_b_proj", "kv_b_proj"), **LATENT),
    text("distilbert", "DistilBertForMaskedLM", ("q_lin", "v_lin"), **SEQ2SEQ | {"dim": 128, "n_layers": 3, "n_heads": 4, "hidden_dim": 256, "max_position_embeddings": 512}),
    text("electra", "ElectraForMaskedLM", ("query", "value"), **ENCODER, embedding_size=64),
    text("falcon", "FalconForCausalLM", ("query_key_value",), **NO_GROUPS, multi_query=True),
    text("falcon", "FalconForCausalLM", ("query_key_value",), **NO_GROUPS, new_decoder_architecture=True, num_kv_heads=2),
    text("gemma", "GemmaForCausalLM", head_dim=32),
    text("gemma2", "Gemma2ForCausalLM", head_dim=32, sliding_window=64),
    text("gemma3_text", "Gemma3ForCausalLM", head_dim=32, sliding_window=64),
    text("glm", "GlmForCausalLM", head_dim=32),
    text("gpt2", "GPT2LMHeadModel", ("c_attn",), **GPT2),
    text("gpt_bigcode", "GPTBigCodeForCausalLM", ("c_attn",), **GPT2),
    text("gpt_neox", "GPTNeoXForCausalLM", ("query_key_value",), **NO_GROUPS),
    text("gpt_oss", "GptOssForCausalLM", head_dim=32, num_local_experts=8, num_experts_per_tok=2, sliding_window=64),
    text("granite", "GraniteForCausalLM"),
    text("mbart", "MBartForConditionalGeneration", **TWO_SIDED),
    text("mistral", "MistralForCausalLM", sliding_window=64),
    text("mixtral", "MixtralForCausalLM", num_local_experts=8, num_experts_per_tok=2),
    text("modernbert", "ModernBertForMaskedLM", ("Wqkv",), **ENCODER, eos_token_id=2, bos_token_id=1, cls_token_id=1, sep_token_id=2),
    text("olmo", "OlmoForCausalLM"),
    text("olmo2", "Olmo2ForCausalLM"),
    text("olmo3", "Olmo3ForCausalLM", sliding_window=64),
    text("opt", "OPTForCausalLM", **NO_GROUPS | {"intermediate_size": None}, ffn_dim=256, word_embed_proj_dim=128, max_position_embeddings=512),
    text("phi", "PhiForCausalLM"),
    text("phi3", "Phi3ForCausalLM", ("qkv_proj",)),
    text("qwen2", "Qwen2ForCausalLM"),
    text("qwen2_moe", "Qwen2MoeForCausalLM", num_experts=8, shared_expert_intermediate_size=128, **EXPERTS),
    text("qwen3", "Qwen3ForCausalLM", head_dim=32),
    text("qwen3_moe", "Qwen3MoeForCausalLM", num_experts=8, head_dim=32, **EXPERTS),
    text("roberta", "RobertaForMaskedLM", ("query", "value"), **ENCODER | {"max_position_embeddings": 514}, type_vocab_size=1),
    text("seed_oss", "SeedOssForCausalLM", head_dim=32),
    text("smollm3", "SmolLM3ForCausalLM"),
    text("stablelm", "StableLmForCausalLM"),
    text("starcoder2", "Starcoder2ForCausalLM"),
    text("t5", "T5ForConditionalGeneration", ("q", "v"), **SEQ2SEQ, decoder_start_token_id=0, d_model=128, d_kv=32, d_ff=256, num_layers=3, num_heads=4),
    text("t5", "T5ForConditionalGeneration", ("q", "v"), **SEQ2SEQ, decoder_start_token_id=0, d_model=128, d_kv=32, d_ff=256, num_layers=3, num_heads=4, feed_forward_proj="gated-gelu", tie_word_embeddings=False),
    text("whisper", "WhisperForConditionalGeneration", **TWO_SIDED | {"max_position_embeddings": None}, max_source_positions=150, max_target_positions=448, decoder_start_token_id=1, eos_token_id=2, bos_token_id=1),
    image("dinov2", "Dinov2ForImageClassification", ("query", "value"), intermediate_size=None, mlp_ratio=2),
    image("dinov2_with_registers", "Dinov2WithRegistersForImageClassification", ("query", "value"), intermediate_size=None, mlp_ratio=2),
    image("siglip_vision_model", "SiglipVisionModel", num_labels=None),
    image("clip_vision_model", "CLIPVisionModel", num_labels=None),
]

# Names that torchvision or timm makes models by; images of a random size, but for transformers.
PRESETS = ("resnet18", "resnet50", "resnext50_32x4d", "vgg11", "vgg13_bn", "alexnet", "squeezenet1_1", "densenet121", "mobilenet_v2", "mobilenet_v3_small", "googlenet", "inception_v3", "efficientnet_b0",
           "efficientnet_v2_s", "convnext_tiny", "swin_t", "vit_b_16", "vit_tiny_patch16_224", "mixer_b16_224")
FIXED_SIZE = ("vit_b_16", "vit_tiny_patch16_224", "mixer_b16_224")
TIMM = ("vit_tiny_patch16_224", "mixer_b16_224")


def population():
    known = script("record-families.py").families(None)
    small = [f for f in known if "recorded_as" not in f and all(r["parameters"] < MAX_PARAMETERS for r in f["recorded"].values())]
    return small + MORE

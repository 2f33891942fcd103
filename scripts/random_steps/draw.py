"""Draws jobs (docs/contract.md, section 3) from a seed: the same seed is the same job wherever it is asked."""
import copy
import random

from . import images, layers, odd_layers, options
from .configs import FIXED_SIZE, HEADS, LACKING, OWN_HEADS, PRESETS, population

STACK = {"framework": "pytorch"}
OPTIMIZERS = ("adamw", "adamw", "adam", "sgd", "sgd-momentum", "rmsprop", "adagrad", "adafactor", "adamw-8bit", "lion_32bit")
FORMS = ("foreach", "fused", "for-loop")
HAS_FUSED = ("adamw", "adam", "sgd", "sgd-momentum", "adagrad")
PRECISIONS = ("fp32", "bf16", "bf16", "fp16", "amp-bf16", "amp-bf16", "amp-fp16")
NO_CHECKPOINTS = ("albert", "convnext", "convnextv2", "swin")
PAIRS = (("num_attention_heads", "hidden_size"), ("n_head", "n_embd"), ("n_heads", "dim"), ("n_head", "hidden_size"), ("num_heads", "hidden_size"), ("n_heads", "d_model"))
LANGUAGE_HEADS = ("ForCausalLM", "LMHeadModel", "ForMaskedLM", "ForConditionalGeneration")
KEPT = ("swin", "convnext", "convnextv2", "hubert", "wav2vec2", "codegen", "opt")  # whose widths belong together in ways of their own


def _resized(rng, config):
    """Other heads, widths, vocabularies and depths, as far as the configuration names them."""
    config = copy.deepcopy(config)
    kind = config["model_type"]
    if kind not in KEPT:
        for heads, width in PAIRS:
            if heads in config and width in config:
                config[heads] = rng.choice((2, 4, 6, 8))
                config[width] = config[heads] * (config.get("head_dim") or rng.choice((16, 24, 32, 64)))
        if "num_key_value_heads" in config and "kv_lora_rank" not in config:
            config["num_key_value_heads"] = rng.choice([n for n in (1, 2, 4, 8, 6, 3) if config["num_attention_heads"] % n == 0])
        elif "kv_lora_rank" in config:
            config["num_key_value_heads"] = config["num_attention_heads"]
        for key in ("intermediate_size", "ffn_dim", "hidden_dim", "d_ff"):
            if isinstance(config.get(key), int):
                config[key] = rng.choice((256, 344, 300, 512))
    for key in ("num_hidden_layers", "n_layer", "n_layers", "encoder_layers", "decoder_layers"):
        if key in config and kind not in ("gpt_neo", "lfm2", "exaone4"):
            config[key] = rng.randint(2, 4)
    if "vocab_size" in config and config.get("pad_token_id", 0) == 0:
        config["vocab_size"] = rng.choice((1000, 1001, 2053, 4096, 8191))
    return config


def _with_head(rng, family):
    """Another head of the same family, and whether its output matrix is tied."""
    config, name = family["config"], family["config"]["architectures"][0]
    if "tokens" not in family["input"] or config["model_type"] in OWN_HEADS:
        return
    prefix = name
    for head in HEADS + ("ForMaskedLM", "LMHeadModel"):
        prefix = prefix.removesuffix(head) if prefix == name else prefix
    heads = [head for head in HEADS[1:] if head[3:] not in LACKING.get(config["model_type"], ())]
    if heads and rng.random() < 0.35:
        head = rng.choice(heads)
        config["architectures"] = [prefix + head]
        config["pad_token_id"] = 0
    elif "ForCausalLM" in name and rng.random() < 0.4:
        config["tie_word_embeddings"] = rng.random() < 0.5


def _extents(rng, family):
    config, given = family["config"], family["input"]
    if "tokens" in given:
        length = rng.choice((64, 100, 127, 129, 200, 256, 333, 384))
        extents = {"sequence_length": length}
        if config["model_type"] in OWN_HEADS and config["model_type"] != "whisper" and rng.random() < 0.5:
            extents["target_sequence_length"] = rng.choice((32, 77, 150))
        return extents
    if "samples" in given:
        return {"sequence_length": rng.choice((8000, 16000, 20001))}
    return {"image_size": given["image"][0]}


def _lora(rng, targets):
    return {"rank": rng.choice((4, 8, 16)), "targets": rng.choice((targets, targets, targets[:1], ["all-linear"])), "dropout": rng.choice((0, 0, 0.05)), "precision": rng.choice(("fp32", "fp32", "base"))}


def _optimizer(rng):
    name = rng.choice(OPTIMIZERS)
    optimizer = {"name": name}
    if name in HAS_FUSED and rng.random() < 0.6:
        optimizer["implementation"] = rng.choice(FORMS)
    elif name == "rmsprop" and rng.random() < 0.5:
        optimizer["implementation"] = rng.choice(("foreach", "for-loop"))
    if name in ("adamw", "adam", "sgd", "sgd-momentum") and rng.random() < 0.3:
        optimizer["weight_decay"] = 0.1
    return optimizer


def _loop(rng, training, precisions=PRECISIONS):
    training["precision"] = rng.choice(precisions)
    training["optimizer"] = _optimizer(rng)
    if rng.random() < 0.35:
        training["gradient_accumulation_steps"] = rng.choice((2, 3))
    if training["precision"] == "amp-fp16" and rng.random() < 0.8:
        training["grad_scaler"] = True
    if rng.random() < 0.2:
        training["gradient_clipping"] = True
    if rng.random() < 0.15:
        training["zero_grad"] = "before_backward"


def _of_family(rng, seed):
    family = copy.deepcopy(rng.choice(population()))
    family["config"] = config = _resized(rng, family["config"])
    _with_head(rng, family)
    training = {"mode": "train", "batch_size": rng.randint(1, 7), **_extents(rng, family)}
    is_decoder = any(head in config["architectures"][0] for head in ("ForCausalLM", "LMHeadModel"))
    how = rng.random()
    if how < 0.12:
        training.update(mode="inference", precision=rng.choice(PRECISIONS))
        if "tokens" in family["input"]:
            training["use_cache"] = is_decoder and rng.random() < 0.5
        if is_decoder:
            training["logits_to_keep"] = rng.choice((0, 1))
    elif how < 0.2 and is_decoder:
        training.update(mode="generate", precision=rng.choice(("fp32", "bf16", "fp16")), new_tokens=rng.choice((3, 8, 21)), kv_cache=rng.choice(("dynamic", "dynamic", "static")))
    else:
        _loop(rng, training)
        if rng.random() < 0.3 and config["model_type"] not in NO_CHECKPOINTS:
            training["gradient_checkpointing"] = "full"
            training["checkpoint_reentrant"] = rng.random() < 0.25
        if rng.random() < 0.35:
            training["lora"] = _lora(rng, family["lora_targets"])
            if training["lora"]["targets"] == ["all-linear"] and not any(head in config["architectures"][0] for head in LANGUAGE_HEADS):
                training["lora"]["targets"] = family["lora_targets"]  # PEFT would adapt heads of classes, too (docs/families.md)
            if training["lora"]["precision"] == "base":
                training["lora"]["precision"] = training["precision"] if training["precision"] in ("bf16", "fp16") else "fp32"
    if rng.random() < 0.2:
        training["attention"] = "eager"
    if training["mode"] == "train" and "tokens" in family["input"] and rng.random() < 0.1:
        training["label_smoothing"] = 0.1
    options.vary(seed, family, training)
    return {"id": family["name"], "model": {"config": config}, "training": training}


def _of_images(rng, seed):
    family = copy.deepcopy(rng.choice(images.CONFIGS))
    config = family["config"]
    kind = config["model_type"]
    training = {"mode": "train", "batch_size": rng.randint(1, 5), "image_size": 112}
    if kind in images.TWO_TOWERS:
        training["sequence_length"] = images.TWO_TOWERS[kind]
    else:
        training.update(num_images=rng.choice((1, 1, 2)), sequence_length=rng.choice((160, 201, 256)))
        config["text_config"]["num_key_value_heads"] = rng.choice((1, 2, 4))
        config["text_config"]["vocab_size"] = rng.choice((1000, 4097))
        config["tie_word_embeddings"] = config["text_config"]["tie_word_embeddings"] = kind in ("paligemma", "gemma3")
        if rng.random() < 0.5:
            training["freeze"] = rng.choice((["vision_tower"], ["vision_tower", "projector"], ["language_model"], ["vision_tower", "language_model"]))
    _loop(rng, training)
    if rng.random() < 0.3:
        training["gradient_checkpointing"] = "full"
    if "freeze" not in training and rng.random() < 0.3:
        training["lora"] = _lora(rng, family["lora_targets"])
        training["lora"]["precision"] = "fp32"
        if kind in images.TWO_TOWERS and training["lora"]["targets"] == ["all-linear"]:
            training["lora"]["targets"] = family["lora_targets"]
    return {"id": family["name"], "model": {"config": config}, "training": training}


def _of_preset(rng, seed):
    name = rng.choice(PRESETS)
    size = 299 if name == "inception_v3" else 224 if name in FIXED_SIZE else rng.choice((96, 128, 160, 224))
    training = {"mode": "train", "batch_size": rng.randint(2, 7), "image_size": size}
    if rng.random() < 0.15:
        training.update(mode="inference", precision=rng.choice(("fp32", "bf16", "amp-bf16")))
    else:
        _loop(rng, training)
        if rng.random() < 0.2:
            training["label_smoothing"] = 0.1
    return {"id": name, "model": {"preset": name, "num_classes": rng.choice((10, 37, 1000))}, "training": training}


def _of_layers(rng, seed):
    model = layers.draw(rng)
    training = {"mode": "train", "batch_size": rng.randint(2, 7)}
    _loop(rng, training, ("fp32", "bf16", "amp-bf16", "amp-fp16"))
    others = random.Random(f"layers of {seed}")
    if others.random() < 0.5:
        model = odd_layers.draw(others)
    if any(layer["type"] == "fno_block" for layer in model["layers"]):
        training["precision"] = "fp32"  # cuFFT has no bf16
        for key in ("gradient_clipping", "grad_scaler"):  # fake tensors cannot scale complex gradients by a real factor
            training.pop(key, None)
    return {"id": "layers", "model": model, "training": training}


KINDS = {"family": (_of_family, 0.68), "images": (_of_images, 0.08), "preset": (_of_preset, 0.1), "layers": (_of_layers, 0.14)}


def job_of(seed):
    """The kind of job and the job."""
    rng = random.Random(seed)
    kind, = rng.choices(list(KINDS), [share for _, share in KINDS.values()])
    return kind, KINDS[kind][0](rng, seed) | {"allocator": {"backend": "none"}, "target": {"gpu": "a100-80gb"}}

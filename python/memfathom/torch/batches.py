"""Batches for a model that is known by its configuration: shapes from the job, the rest from the configuration."""
from __future__ import annotations

from typing import Any, Callable

import torch

from .job_keys import NotAnswered, Settings
from .models import Described


def _need(settings: Settings, key: str) -> Any:
    if key not in settings.extents:
        raise NotAnswered(f"this model needs training.{key} (--{key.replace('_', '-')})")
    return settings.extents[key]


TOKEN = 10  # one that no configuration has for padding, so that batches are full


def _tokens(batch: int, length: int, vocabulary: int) -> torch.Tensor:
    return torch.full((batch, length), min(TOKEN, vocabulary - 1)).cuda()


def _image_size(settings: Settings, config: Any) -> list[int]:
    size = settings.extents.get("image_size") or getattr(config, "image_size", None)
    if size is None:
        raise NotAnswered("this model needs training.image_size (--image-size)")
    return list(size) if isinstance(size, (list, tuple)) else [int(size)] * 2


def _labels(kind: str, settings: Settings, config: Any, tokens: torch.Tensor) -> dict[str, torch.Tensor]:
    count = tokens.shape[0]
    if "SequenceClassification" in kind or "ImageClassification" in kind or "AudioClassification" in kind:
        return {"labels": torch.zeros(count, dtype=torch.int64).cuda()}
    if "QuestionAnswering" in kind:
        return {"start_positions": torch.zeros(count, dtype=torch.int64).cuda(), "end_positions": torch.zeros(count, dtype=torch.int64).cuda()}
    if "CausalLM" in kind or "MaskedLM" in kind or "ConditionalGeneration" in kind or "TokenClassification" in kind or "LMHead" in kind or "PreTraining" in kind or "ImageTextToText" in kind:
        target = settings.extents.get("target_sequence_length")
        if target is not None and target != tokens.shape[1]:
            return {"labels": _tokens(count, int(target), 2)}
        return {"labels": tokens % 2 if "TokenClassification" in kind else tokens}
    return {}


def _of_transformers(described: Described, settings: Settings, training: bool) -> dict[str, Any]:
    model, config, kind, count = described.model, described.config, type(described.model).__name__, settings.batch_size
    text = config.get_text_config() if hasattr(config, "get_text_config") else config
    takes = model.main_input_name
    if takes == "input_ids":
        tokens = _tokens(count, int(_need(settings, "sequence_length")), min(text.vocab_size, 1 << 30))
        batch = {"input_ids": tokens}
        if training:
            batch.update(_labels(kind, settings, config, tokens))
        return batch
    if takes == "pixel_values":
        size = _image_size(settings, config)
        pixels = torch.zeros(count, getattr(config, "num_channels", 3), *size, dtype=model.dtype).cuda()
        if not training:
            return {"pixel_values": pixels}
        if "SemanticSegmentation" in kind:
            return {"pixel_values": pixels, "labels": torch.zeros(count, *size, dtype=torch.int64).cuda()}
        return {"pixel_values": pixels, **_labels(kind, settings, config, pixels)}
    if takes == "input_values":
        return {"input_values": torch.zeros(count, int(_need(settings, "sequence_length")), dtype=model.dtype).cuda(), **(_labels(kind, settings, config, torch.zeros(count, 1)) if training else {})}
    if takes == "input_features":
        frames = 2 * getattr(config, "max_source_positions", 1500)
        batch = {"input_features": torch.zeros(count, getattr(config, "num_mel_bins", 80), frames, dtype=model.dtype).cuda()}
        tokens = _tokens(count, int(_need(settings, "sequence_length")), text.vocab_size)
        return {**batch, "labels": tokens} if training else {**batch, "decoder_input_ids": tokens}
    raise NotAnswered(f"{kind} takes {takes}, for which no batch can be made from a configuration; record your script with memfathom capture train.py")


def _latent(settings: Settings, spatial: int, temporal: int = 0) -> list[int]:
    """Extents of what an autoencoder makes of the job's images or video."""
    size = settings.extents.get("image_size")
    if size is None:
        raise NotAnswered("this model needs training.image_size (--image-size), in pixels")
    height, width = (size, size) if isinstance(size, int) else size
    frames = [(int(_need(settings, "num_frames")) - 1) // temporal + 1] if temporal else []
    return [*frames, height // spatial, width // spatial]


def _sd3(c: Any, s: Settings) -> dict[str, Any]:
    n = s.batch_size
    return {"hidden_states": torch.zeros(n, c.in_channels, *_latent(s, 8)), "encoder_hidden_states": torch.zeros(n, s.extents.get("sequence_length", 333), c.joint_attention_dim),
            "pooled_projections": torch.zeros(n, c.pooled_projection_dim), "timestep": torch.zeros(n, dtype=torch.int64)}


def _wan(c: Any, s: Settings) -> dict[str, Any]:
    n = s.batch_size
    batch = {"hidden_states": torch.zeros(n, c.in_channels, *_latent(s, 8, 4)), "timestep": torch.zeros(n, dtype=torch.int64), "encoder_hidden_states": torch.zeros(n, s.extents.get("sequence_length", 512), c.text_dim)}
    if c.get("image_dim"):
        batch["encoder_hidden_states_image"] = torch.zeros(n, 257, c.image_dim)
    return batch


def _ltx(c: Any, s: Settings) -> dict[str, Any]:
    n, length = s.batch_size, s.extents.get("sequence_length", 128)
    frames, height, width = _latent(s, 32, 8)
    return {"hidden_states": torch.zeros(n, frames * height * width, c.in_channels), "encoder_hidden_states": torch.zeros(n, length, c.caption_channels), "timestep": torch.zeros(n, dtype=torch.int64),
            "encoder_attention_mask": torch.ones(n, length, dtype=torch.int64), "num_frames": frames, "height": height, "width": width}


def _hunyuan(c: Any, s: Settings) -> dict[str, Any]:
    n, length = s.batch_size, s.extents.get("sequence_length", 256)
    batch = {"hidden_states": torch.zeros(n, c.in_channels, *_latent(s, 8, 4)), "timestep": torch.zeros(n, dtype=torch.int64), "encoder_hidden_states": torch.zeros(n, length, c.text_embed_dim),
             "encoder_attention_mask": torch.ones(n, length, dtype=torch.int64), "pooled_projections": torch.zeros(n, c.pooled_projection_dim)}
    return {**batch, "guidance": torch.zeros(n)} if c.get("guidance_embeds") else batch


def _unet(c: Any, s: Settings) -> dict[str, Any]:
    n = s.batch_size
    batch = {"sample": torch.zeros(n, c.in_channels, *_latent(s, 8)), "timestep": torch.zeros(n, dtype=torch.int64)}
    if c.get("cross_attention_dim"):
        batch["encoder_hidden_states"] = torch.zeros(n, s.extents.get("sequence_length", 77), c.cross_attention_dim)
    return batch


def _pixels(c: Any, s: Settings) -> dict[str, Any]:
    return {"sample": torch.zeros(s.batch_size, c.in_channels, *_latent(s, 1))}


DIFFUSERS: dict[str, Callable[[Any, Settings], dict[str, Any]]] = {
    "SD3Transformer2DModel": _sd3, "WanTransformer3DModel": _wan, "LTXVideoTransformer3DModel": _ltx, "HunyuanVideoTransformer3DModel": _hunyuan,
    "UNet2DConditionModel": _unet, "AutoencoderKL": _pixels}


def _of_diffusers(described: Described, settings: Settings) -> dict[str, Any]:
    kind = type(described.model).__name__
    if kind not in DIFFUSERS:
        raise NotAnswered(f"no batch is known for diffusers' {kind}; record your script with memfathom capture train.py")
    dtype = next(described.model.parameters()).dtype

    def to_gpu(value: Any) -> Any:
        if not isinstance(value, torch.Tensor):
            return value
        return value.to(dtype).cuda() if value.is_floating_point() else value.cuda()

    return {key: to_gpu(value) for key, value in DIFFUSERS[kind](described.config, settings).items()}


def batch_of(described: Described, settings: Settings, training: bool) -> dict[str, Any]:
    if described.library == "transformers":
        return _of_transformers(described, settings, training)
    if described.library == "diffusers":
        return _of_diffusers(described, settings)
    size = _image_size(settings, type("Config", (), {"image_size": (described.config.get("pretrained_cfg") or {}).get("input_size", [3, 224, 224])[1:]}))
    return {"x": torch.zeros(settings.batch_size, described.model.default_cfg.get("input_size", (3,))[0], *size, dtype=next(described.model.parameters()).dtype).cuda()}

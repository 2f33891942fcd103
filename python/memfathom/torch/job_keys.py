"""A job (docs/contract.md, section 3) as settings of a recorded step. What is not known here is refused, never left out."""
from __future__ import annotations

from typing import Any, Optional

import torch


class NotAnswered(Exception):
    """The job cannot be recorded from its configuration; the text says why and what to do."""


PRECISIONS = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16, "float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}
AUTOCAST = {"amp-bf16": torch.bfloat16, "amp-fp16": torch.float16}
CHECKPOINTING = {"none": False, "full": True, True: True, False: False}
EXTENTS = ("batch_size", "sequence_length", "target_sequence_length", "image_size", "num_frames", "new_tokens", "gradient_accumulation_steps")
# Keys of which only this value is answered, with the words for any other.
ONLY = {"quantization": "none", "preference": "none", "lengths": "fixed", "drop_last": True, "evaluation": False, "freeze": [], "warmup_forward": False, "num_images": 0}
# Keys that change nothing in a recorded step, or that PyTorch decides by itself.
HARMLESS = ("compile", "cudnn_benchmark", "samples_per_epoch", "channels_last")


def _other_way(key: str, value: Any) -> NotAnswered:
    return NotAnswered(f"{key} is {value}, which a recording from a configuration does not do; record your training script with memfathom capture train.py")


class Settings:
    """What the job says of the step."""

    def __init__(self, job: dict[str, Any]):
        training, model, parallel = dict(job.get("training") or {}), dict(job.get("model") or {}), dict(job.get("parallel") or {})
        self.mode = training.pop("mode", "train")
        if self.mode not in ("train", "inference", "generate"):
            raise _other_way("training.mode", self.mode)
        self.extents: dict[str, Any] = {key: training.pop(key) for key in EXTENTS if training.get(key) is not None}
        self.batch_size = int(self.extents.get("batch_size", 1))
        self.accumulation = int(self.extents.get("gradient_accumulation_steps", 1))
        self._read_precision(training)
        self._read_optimizer(training.pop("optimizer", None) or "adamw")
        self.checkpointing = self._choice("training.gradient_checkpointing", training.pop("gradient_checkpointing", False), CHECKPOINTING)
        self.reentrant = bool(training.pop("checkpoint_reentrant", False))
        self.lora: Optional[dict[str, Any]] = training.pop("lora", None)
        self.attention = training.pop("attention", None)
        if self.attention not in (None, "sdpa", "eager"):
            raise _other_way("training.attention", self.attention)
        self.clipping = bool(training.pop("gradient_clipping", False) or False)
        self.zero_grad = training.pop("zero_grad", None) or "after_step"
        self.grad_scaler = bool(training.pop("grad_scaler", False))
        self.use_cache: Optional[bool] = training.pop("use_cache", None)
        self.logits_to_keep = int(training.pop("logits_to_keep", None) or 0)
        self.label_smoothing = float(training.pop("label_smoothing", None) or 0)
        self.kv_cache = training.pop("kv_cache", None) or "dynamic"
        if self.kv_cache not in ("dynamic", "static"):
            raise _other_way("training.kv_cache", self.kv_cache)
        self._read_model(model)
        for key, only in ONLY.items():
            value = training.pop(key, None)
            if value is not None and value != only:
                raise _other_way(f"training.{key}", value)
        for key in training:
            if key not in HARMLESS and training[key] is not None:
                raise _other_way(f"training.{key}", training[key])
        self.world = int(parallel.pop("num_gpus", 1))
        parallel.pop("gpus_per_node", None)
        for key, value in parallel.items():
            if value not in (None, False, "none", 0, 1, {}):
                raise _other_way(f"parallel.{key}", value)

    @staticmethod
    def _choice(key: str, value: Any, known: dict[Any, Any]) -> Any:
        if value is None:
            return False
        if value not in known:
            raise _other_way(key, value)
        return known[value]

    def _read_precision(self, training: dict[str, Any]) -> None:
        name = training.pop("precision", None) or "fp32"
        autocast = training.pop("autocast", None)
        if name not in PRECISIONS and name not in AUTOCAST:
            raise _other_way("training.precision", name)
        self.dtype = PRECISIONS.get(name, torch.float32)
        self.autocast = AUTOCAST.get(name)
        if autocast is not None:
            if autocast not in PRECISIONS:
                raise _other_way("training.autocast", autocast)
            self.autocast = PRECISIONS[autocast]

    def _read_optimizer(self, given: Any) -> None:
        words = {"name": given} if isinstance(given, str) else dict(given)
        self.optimizer = words.pop("name")
        self.form = words.pop("implementation", None)
        self.decay = words.pop("weight_decay", None)
        for key, value in words.items():
            if value:
                raise _other_way(f"training.optimizer.{key}", value)

    def _read_model(self, model: dict[str, Any]) -> None:
        self.config = model.pop("config", None)
        if self.config is None:
            raise NotAnswered("--via torch needs a model that a configuration describes: a config.json, its folder, or a preset of one")
        train = model.pop("train", "full")
        if train not in ("full", "lora") or (train == "lora") and self.lora is None:
            raise _other_way("model.train", train)
        for key, value in model.items():
            if value is not None and not (key == "part" and value == "whole"):
                raise _other_way(f"model.{key}", value)


def optimizer_of(settings: Settings, parameters: list[torch.nn.Parameter]) -> Optional[torch.optim.Optimizer]:
    form = {"fused": {"fused": True}, "foreach": {"foreach": True}, "for-loop": {"foreach": False}}.get(settings.form or "", {})
    if settings.decay is not None:
        form["weight_decay"] = float(settings.decay)
    make = {"sgd": torch.optim.SGD, "adam": torch.optim.Adam, "adamw": torch.optim.AdamW, "rmsprop": torch.optim.RMSprop, "adagrad": torch.optim.Adagrad}
    if settings.optimizer == "none":
        return None
    if settings.optimizer == "sgd-momentum":
        return torch.optim.SGD(parameters, 0.1, momentum=0.9, **form)
    if settings.optimizer == "adafactor":
        from transformers.optimization import Adafactor

        return Adafactor(parameters)
    if settings.optimizer in ("adamw-8bit", "lion_32bit"):
        import bitsandbytes

        return (bitsandbytes.optim.AdamW8bit if settings.optimizer == "adamw-8bit" else bitsandbytes.optim.Lion)(parameters)
    if settings.optimizer not in make:
        raise _other_way("training.optimizer", settings.optimizer)
    return make[settings.optimizer](parameters, 1e-4, **form)

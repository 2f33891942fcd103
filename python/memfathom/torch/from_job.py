"""Records a step of a model that a job names by its configuration: `memfathom estimate JOB --via torch`.

    python -m memfathom.torch.from_job JOB.json -o step.jsonl.gz [--gpu JSON] [--vary batch_size[,sequence_length]] [--told FILE]

The job is docs/contract.md's (section 3), with model.config. What was recorded, with which versions, and how long it took is told
as a JSON object, in FILE or as the last line on standard error; or "refused", a sentence.
"""
from __future__ import annotations

import argparse
import copy
import json
import os
import sys
import tempfile
import time
import traceback
from typing import Any

import torch

from . import distributed, models, recording, vary
from .batches import batch_of
from .job_keys import NotAnswered, Settings, optimizer_of

STEPS = 2


def _loss(output: Any) -> torch.Tensor:
    """The output's own loss; else the mean of its largest tensor, as a regression has it."""
    found = getattr(output, "loss", None)
    if found is not None:
        return found
    if isinstance(output, torch.Tensor):
        return output.float().square().mean()
    first = output[0] if isinstance(output, (tuple, list)) else next(iter(output.values()))
    return first.float().square().mean()


def _adapted(described: models.Described, lora: dict[str, Any]) -> Any:
    peft = models.imported("peft")
    targets = lora.get("targets") or ["q_proj", "v_proj"]
    config = peft.LoraConfig(r=int(lora["rank"]), lora_dropout=float(lora.get("dropout") or 0.0), target_modules="all-linear" if "all-linear" in targets else list(targets))
    base = described.model
    base.requires_grad_(False)
    return peft.get_peft_model(base, config, autocast_adapter_dtype=lora.get("precision") in (None, "fp32"))


class Step:
    """The model on the pretended GPU, and one step of the job."""

    def __init__(self, settings: Settings, config: dict[str, Any], folder: str):
        self.settings = settings
        self.notes: list[str] = []
        self.smoothed: Any = None  # the labels, where the Trainer smooths them
        self.described = self.make_model(config, folder)
        model = self.described.model
        self.parameters = sum(p.numel() for p in model.parameters())
        self.kind = type(model).__name__
        if self.described.library == "transformers" and any(hasattr(self.described.config, part) for part in ("vision_config", "audio_config")) and model.main_input_name == "input_ids":
            self.notes.append("only text is given to the model: its images or sounds are not part of the step, their towers are counted with their weights")
        model = _adapted(self.described, settings.lora) if settings.lora else model
        self.model = model.cuda()
        training = settings.mode == "train"
        self.model.train(training)
        if training and settings.checkpointing:
            self._checkpoint()
        if training and settings.world > 1:
            torch.distributed.init_process_group("nccl")
            self.model = torch.nn.parallel.DistributedDataParallel(self.model)
        self.trained = [p for p in self.model.parameters() if p.requires_grad] if training else []
        self.optimizer = optimizer_of(settings, self.trained) if training else None
        self.scaler = torch.amp.GradScaler("cuda") if settings.grad_scaler else None

    def make_model(self, config: dict[str, Any], folder: str) -> models.Described:
        return models.make(config, folder, {"attention": self.settings.attention}, self.settings.dtype)

    def make_batch(self, training: bool) -> dict[str, Any]:
        return batch_of(self.described, self.settings, training)

    def loss(self, output: Any) -> torch.Tensor:
        if self.smoothed is None:
            return _loss(output)
        trainer = models.imported("transformers.trainer_pt_utils")
        auto = models.imported("transformers.models.auto.modeling_auto")
        shifts = self.kind in auto.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES.values()
        return trainer.LabelSmoother(self.settings.label_smoothing)(output, self.smoothed, shift_labels=shifts)

    def _without_labels(self, batch: dict[str, Any]) -> dict[str, Any]:
        """With label smoothing transformers' Trainer keeps the labels for itself; a data collator makes the decoder's tokens."""
        self.smoothed, rest = batch["labels"], {key: value for key, value in batch.items() if key != "labels"}
        return {**rest, "decoder_input_ids": self.smoothed} if self.described.config.is_encoder_decoder else rest

    def _checkpoint(self) -> None:
        if self.described.library == "timm":
            self.model.set_grad_checkpointing(True)
        elif self.described.library == "diffusers":
            self.model.enable_gradient_checkpointing()
        else:
            if self.settings.lora:
                self.model.enable_input_require_grads()
            self.model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": self.settings.reentrant})

    def call(self, training: bool) -> Any:
        batch = self.make_batch(training)
        if self.described.library == "timm":
            return self.model(batch["x"])
        if self.described.library == "transformers" and self.described.config.to_dict().get("use_cache") and not self.settings.checkpointing:
            if training or self.settings.use_cache is False:
                batch = {**batch, "use_cache": False}
        if self.settings.logits_to_keep:
            batch = {**batch, "logits_to_keep": self.settings.logits_to_keep}
        if training and self.settings.label_smoothing and "labels" in batch:
            batch = self._without_labels(batch)
        return self.model(**batch)

    def run(self) -> None:
        settings = self.settings
        scope = torch.autocast("cuda", dtype=settings.autocast) if settings.autocast else torch.autocast("cuda", enabled=False)
        if settings.mode == "generate":
            with torch.no_grad(), scope:
                options = {"cache_implementation": "static"} if settings.kv_cache == "static" else {}
                self.model.generate(**self.make_batch(False), max_new_tokens=int(settings.extents.get("new_tokens", 128)), do_sample=False, eos_token_id=None, **options)
            return
        if settings.mode == "inference":
            with torch.no_grad(), scope:
                self.call(False)
            return
        for micro_batch in range(settings.accumulation):
            with scope:
                loss = self.loss(self.call(True))
            if settings.zero_grad == "before_backward" and micro_batch == 0 and self.optimizer is not None:
                self.optimizer.zero_grad()
            (self.scaler.scale(loss) if self.scaler is not None else loss).backward()
            del loss
        if settings.clipping:
            torch.nn.utils.clip_grad_norm_(self.trained, 1.0)
        if self.optimizer is not None:
            if self.scaler is not None:
                self.scaler.step(self.optimizer)
                self.scaler.update()
            else:
                self.optimizer.step()
            if settings.zero_grad != "before_backward":
                self.optimizer.zero_grad(set_to_none=settings.zero_grad != "in_place")


def _record(settings: Settings, config: dict[str, Any], folder: str, gpu: dict[str, Any], path: str) -> dict[str, Any]:
    with recording(gpu=gpu, world=settings.world, stop=False) as recorded:
        step = Step(settings, config, folder)
        for _ in range(STEPS if settings.mode == "train" else 1):
            step.run()
    sizes = {key: int(value) for key, value in settings.extents.items() if key in ("batch_size", "sequence_length")}
    recorded.write(path, {"sizes": {"batch_size": settings.batch_size, **sizes}, "model": step.kind})
    also = ("peft",) if settings.lora else ()
    return {"model": step.kind, "parameters": step.parameters, "versions": models.versions(step.described.library, also), "notes": step.notes, "allocated_peak_bytes": recorded.allocated_peak_bytes}


def _in_child(settings: Settings, sizes: dict[str, int], *rest: Any) -> dict[str, Any]:
    """A recording in a process of its own: libraries keep tensors of a recording, and another one cannot use them."""
    settings = copy.deepcopy(settings)
    settings.extents.update(sizes)
    settings.batch_size = int(settings.extents.get("batch_size", 1))
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        told: dict[str, Any] = {}
        try:
            told = _record(settings, *rest)
        except NotAnswered as refusal:
            told = {"refused": str(refusal)}
        except Exception as error:  # the library's own: its traceback is the answer
            traceback.print_exc()
            told = {"refused": f"recording failed: {type(error).__name__}: {error}"}
        sys.stderr.flush()
        os.write(writing, json.dumps(told).encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        text = pipe.read()
    os.waitpid(child, 0)
    told = json.loads(text) if text else {"refused": "the process that recorded was killed; is there enough memory on the host?"}
    if "refused" in told:
        raise NotAnswered(told["refused"])
    return told


def recorded_job(job: dict[str, Any], path: str, gpu: dict[str, Any], names: list[str]) -> dict[str, Any]:
    settings, begin = Settings(job), time.monotonic()
    config, folder = models.read_config(settings.config, job.get("folder"))
    if settings.world > 1:
        os.environ.update(distributed.environment(settings.world))
    models.prepare(config)
    with recording(gpu=gpu, stop=False):
        pass  # what recordings import is imported once, before the processes part
    rest = (config, folder, gpu)
    if not names:
        told = _in_child(settings, {}, *rest, path)
    else:
        told = _varied(settings, rest, path, names)
    told["seconds"] = round(time.monotonic() - begin, 1)
    told["torch"] = torch.__version__.split("+")[0]
    return told


def _varied(settings: Settings, rest: tuple[Any, ...], path: str, names: list[str]) -> dict[str, Any]:
    now = {"batch_size": settings.batch_size, **{key: int(settings.extents[key]) for key in ("sequence_length",) if key in settings.extents}}
    if any(name not in now for name in names):
        raise NotAnswered(f"{', '.join(names)} cannot vary: this job has no sequence_length")
    now = {name: now[name] for name in names}
    nodes, check = vary.sizes_to_record(now)
    with tempfile.TemporaryDirectory() as folder:
        lines, told = [], {}
        for i, sizes in enumerate([*nodes, check]):
            part = os.path.join(folder, f"{i}.jsonl")
            told = _in_child(settings, sizes, *rest, part)
            lines.append((sizes, vary.lines_of(part)))
        try:
            vary.write(path, vary.joined(lines[:-1], lines[-1]))
        except vary.NotVariable as why:
            told = _in_child(settings, {}, *rest, path)
            told.setdefault("notes", []).append(f"the recording holds for its own sizes only: {why}")
    return told


class Quiet:
    """Keeps what libraries print, for the case that recording fails."""

    def __init__(self) -> None:
        sys.stdout.flush()
        sys.stderr.flush()
        self.error, self.kept = os.dup(2), tempfile.TemporaryFile()
        os.dup2(self.kept.fileno(), 1)
        os.dup2(self.kept.fileno(), 2)

    def show(self) -> None:
        sys.stderr.flush()
        self.kept.seek(0)
        os.write(self.error, self.kept.read())
        os.dup2(self.error, 2)


def main() -> None:
    parser = argparse.ArgumentParser(prog="memfathom.torch.from_job", description="records a step of a model of transformers, diffusers or timm from its configuration")
    parser.add_argument("job", help="a job as JSON, with model.config")
    parser.add_argument("-o", dest="path", default="step.jsonl.gz")
    parser.add_argument("--gpu", default="{}")
    parser.add_argument("--vary", default="")
    parser.add_argument("--told")
    options = parser.parse_args()
    quiet = Quiet() if options.told else None
    try:
        with open(options.job, encoding="utf-8") as file:
            told = recorded_job(json.load(file), options.path, json.loads(options.gpu), [name for name in options.vary.split(",") if name])
    except NotAnswered as refusal:
        told = {"refused": str(refusal)}
    except Exception:
        if quiet is not None:
            quiet.show()
        raise
    if quiet is not None and "refused" in told and "failed" in told["refused"]:
        quiet.show()
    if options.told:
        with open(options.told, "w", encoding="utf-8") as file:
            json.dump(told, file)
    else:
        print(json.dumps(told), file=sys.stderr, flush=True)
    os._exit(2 if "refused" in told else 0)


if __name__ == "__main__":
    main()

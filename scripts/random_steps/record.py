"""Records what PyTorch allocates in a drawn job: the highest live bytes, in blocks of 512, and the number of parameters."""
import gc
import json
import os
import sys
import traceback

import torch
import torch.nn.functional as F

from . import image_batches, modules
from .configs import SCRIPTS, TIMM

sys.path.insert(0, os.path.join(os.path.dirname(SCRIPTS), "python"))

import memfathom.torch  # noqa: E402
from memfathom.torch import from_job, job_keys, models  # noqa: E402
from memfathom.torch.recorder import Recorder  # noqa: E402

BLOCK = 512
OWN_KEYS = ("num_images", "freeze", "padding_mask", "hold_output")  # of training: those that from_job does not know


def rounded(size):
    return (size + BLOCK - 1) // BLOCK * BLOCK


def peaks_of(recorded):
    """The highest live bytes of each phase of each iteration."""
    live, sizes, phase, peaks = 0, {}, None, {}
    for event in recorded._recorder.events:
        if event["op"] == "phase":
            phase = event["name"], recorded._phases.iteration_of(event)
        elif event["op"] == "alloc":
            sizes[event["id"]] = rounded(event["bytes"])
            live += sizes[event["id"]]
        elif event["op"] == "free":
            live -= sizes.pop(event["id"])
        if phase is not None:
            peaks[phase] = max(live, peaks.get(phase, 0))
    return peaks


def adds_out_of_place():
    """Accounts of tensors (`allocator: {backend: none}`) are those of fake tensors, whose gradients the engine never sums in place; the recorder corrects that."""
    Recorder._is_sole_owner = staticmethod(lambda tensor: False)


def _padding(shape):
    """A mask with one token of padding: a mask of ones alone is dropped by transformers."""
    mask = torch.ones(shape, dtype=torch.int64)
    mask[0, -1] = 0
    return mask.cuda()


class FamilyStep(from_job.Step):
    """A step of a model of transformers. As in memfathom's accounts of tensors, the batch stays, and the script has a name for the loss until the next one is
    there: the graph's nodes live as long, and with them the inputs of checkpoints."""

    kept = last = held = None

    def __init__(self, settings, job):
        self.job = job
        super().__init__(settings, job["model"].get("config", {}), "")
        if settings.optimizer == "adafactor" and self.optimizer is not None:
            self.optimizer = torch.optim.Adafactor(self.trained)  # PyTorch's, as memfathom's; from_job has that of transformers' Trainer

    def make_model(self, config, folder):
        made = super().make_model(config, folder)
        image_batches.freeze(made.model, self.job["training"].get("freeze", ()))
        return made

    def make_batch(self, training):
        self.kept = self.kept or self.batch(training)
        return self.kept

    def batch(self, training):
        if image_batches.reads_images(self.job["model"]["config"]):
            return image_batches.batch_of(self.job, self.settings.dtype)
        batch = super().make_batch(training)
        return batch | ({"attention_mask": _padding(batch["input_ids"].shape)} if self.job["training"].get("padding_mask") else {})

    def call(self, training):
        if not (training and self.job["training"].get("use_cache")):
            return super().call(training)
        return self.model(**self.make_batch(training), use_cache=True)

    def loss(self, output):
        self.held = output if self.job["training"].get("hold_output") else None
        self.last = self.loss_of(output)
        return self.last

    def loss_of(self, output):
        if self.smoothed is not None:
            return super().loss(output)
        return output.last_hidden_state.mean() if getattr(output, "loss", None) is None else output.loss


class ScriptStep(FamilyStep):
    """A step of a plain module, whose loss the script computes."""

    def make_model(self, config, folder):
        model, name = self.job["model"], self.job["model"].get("preset")
        if name is None:
            made = modules.module_of(model)
            if self.settings.dtype != torch.float32:  # which would make complex weights real
                made = made.to(self.settings.dtype)
        elif name in TIMM:
            made = models.imported("timm").create_model(name, num_classes=model["num_classes"]).to(self.settings.dtype)
        else:
            options = {"init_weights": False} if name in ("googlenet", "inception_v3") else {}
            made = models.imported("torchvision").models.get_model(name, num_classes=model["num_classes"], **options).to(self.settings.dtype)
        return models.Described(made, "torch", None)

    def batch(self, training):
        model, count, dtype = self.job["model"], self.settings.batch_size, self.settings.dtype
        if "preset" in model:
            size = self.settings.extents["image_size"]
            x, target = torch.zeros(count, 3, size, size, dtype=dtype), torch.zeros(count, dtype=torch.int64)
        else:
            x = torch.zeros(count, *model["input"]["shape"], dtype=torch.int64 if "dtype" in model["input"] else dtype)
            target = modules.target_of(model, self._output_shape(x), dtype)
        return {"x": x.cuda(), "target": target.cuda()} if training else {"x": x.cuda()}

    def _output_shape(self, x):
        """On the meta device, so that nothing is recorded."""
        with torch.device("meta"):
            return modules.module_of(self.job["model"])(torch.zeros(x.shape, dtype=torch.float32 if x.is_floating_point() else x.dtype)).shape

    def call(self, training):
        y = self.model(self.make_batch(training)["x"])
        return (y, self.kept["target"]) if training else y

    def loss_of(self, output):
        y, target = output
        kind, smoothing = self.job["model"].get("loss", "cross_entropy"), self.job["training"].get("label_smoothing", 0)
        if kind == "cross_entropy":
            if isinstance(y, tuple):  # GoogLeNet and Inception with their auxiliary classifiers
                y = _with_auxiliaries(y)
            return F.cross_entropy(y, target, label_smoothing=smoothing)
        return modules.LOSSES[kind](y, target)


def _with_auxiliaries(outputs):
    weights = {3: 0.3, 2: 0.4}[len(outputs)]
    y = outputs[0]
    for auxiliary in outputs[1:]:
        if auxiliary is not None:
            y = y + weights * auxiliary
    return y


def _settings(job):
    """The settings of a job whose model is described by `model` as a whole."""
    known = dict(job, training={k: v for k, v in job["training"].items() if k not in OWN_KEYS})
    if "config" not in job["model"]:
        known["model"] = {"config": {}}
    return job_keys.Settings(known)


def record(job, trace=None):
    settings = _settings(job)
    config = job["model"].get("config")
    if config and not hasattr(models.imported("transformers"), config["architectures"][0]):
        raise job_keys.NotAnswered(f"transformers has no {config['architectures'][0]}")
    adds_out_of_place()
    gc.collect()
    with memfathom.torch.recording(stop=False) as recorded:
        step = (FamilyStep if config else ScriptStep)(settings, job)
        for _ in range(2):
            step.run()
    if trace:
        recorded.write(trace)
    peaks = peaks_of(recorded)
    last = {name: peak for (name, iteration), peak in peaks.items() if iteration == 2}
    if settings.mode != "train":
        last = {"forward": max(peaks.values())}
    return {"parameters": sum(p.numel() for p in step.model.parameters()), "phases": last, "guesses": list(recorded.guesses)}


def prepare(jobs):
    """Imports once, before the processes part, what the recordings of these jobs import."""
    for library in ("peft", "bitsandbytes", "timm", "torchvision"):
        models.imported(library)
    for config in (job["model"].get("config") for job in jobs):
        if config:
            models.prepare(config)
    with memfathom.torch.recording(stop=False):
        pass


def in_child(job, trace=None):
    """A recording in a process of its own, since libraries keep tensors of it. A sentence where it failed."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        try:
            told = record(job, trace)
        except BaseException as error:
            told = {"failed": f"{type(error).__name__}: {error}", "where": traceback.format_exc()}
        os.write(writing, json.dumps(told).encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        text = pipe.read()
    os.waitpid(child, 0)
    return json.loads(text) if text else {"failed": "the process that recorded was killed"}

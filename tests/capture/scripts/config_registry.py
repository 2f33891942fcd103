"""A main as hydra projects have it: a configuration file next to the script, a registry, logs and a run folder."""
import dataclasses
import importlib
import json
import logging
import pathlib
import random
import tempfile
import time
from functools import partial

import numpy as np
import torch
import torch.nn as nn

log = logging.getLogger(__name__)
REGISTRY = {}
DEFAULTS = {"model": {"_target_": "torch.nn.TransformerEncoderLayer", "d_model": 256, "nhead": 8, "dim_feedforward": 1024, "batch_first": True, "norm_first": True},
            "optim": {"_target_": "torch.optim.AdamW", "lr": 3e-4, "betas": [0.9, 0.98], "weight_decay": 0.05}, "data": {"batch_size": 16, "length": 128},
            "trainer": {"max_steps": 50, "clip": 1.0, "precision": "bf16", "ema": 0.999}, "seed": 7}


def register(name):
    def keep(cls):
        REGISTRY[name] = cls
        return cls
    return keep


def instantiate(node, *args):
    node = dict(node)
    module, _, name = node.pop("_target_").rpartition(".")
    return getattr(importlib.import_module(module), name)(*args, **node)


@register("encoder")
class Encoder(nn.Module):
    def __init__(self, cfg, depth=6, classes=40):
        super().__init__()
        self.layers = nn.ModuleList(instantiate(cfg["model"]) for _ in range(depth))
        self.head = nn.Linear(cfg["model"]["d_model"], classes)

    def forward(self, x, padding=None):
        for layer in self.layers:
            x = layer(x, src_key_padding_mask=padding)
        return self.head(x.mean(dim=1))


@dataclasses.dataclass
class Run:
    folder: pathlib.Path
    started: float = dataclasses.field(default_factory=time.time)
    history: list = dataclasses.field(default_factory=list)

    def note(self, **values):
        self.history.append(values)
        with open(self.folder / "metrics.jsonl", "a") as out:
            out.write(json.dumps(values) + "\n")


def seed_everything(seed):
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)
    torch.cuda.manual_seed_all(seed)
    torch.backends.cudnn.deterministic = True
    torch.backends.cuda.matmul.allow_tf32 = True
    torch.set_float32_matmul_precision("high")


def main(cfg):
    run = Run(pathlib.Path(tempfile.mkdtemp(prefix="run-")))
    logging.basicConfig(level=logging.INFO, handlers=[logging.StreamHandler(), logging.FileHandler(run.folder / "train.log")])
    seed_everything(cfg["seed"])
    device = torch.device("cuda", torch.cuda.current_device())
    model = REGISTRY["encoder"](cfg).to(device)
    ema = torch.optim.swa_utils.AveragedModel(model, multi_avg_fn=torch.optim.swa_utils.get_ema_multi_avg_fn(cfg["trainer"]["ema"]))
    decay, rest = [], []
    for name, parameter in model.named_parameters():
        (decay if parameter.ndim >= 2 else rest).append(parameter)
    make = partial(instantiate, cfg["optim"])
    optimizer = make([{"params": decay}, {"params": rest, "weight_decay": 0.0}])
    warm = torch.optim.lr_scheduler.LinearLR(optimizer, 0.1, total_iters=5)
    scheduler = torch.optim.lr_scheduler.SequentialLR(optimizer, [warm, torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 45)], milestones=[5])
    criterion = nn.CrossEntropyLoss(label_smoothing=0.1)
    log.info("run in %s with %.2f M parameters", run.folder, sum(p.numel() for p in model.parameters()) / 1e6)
    for step in range(cfg["trainer"]["max_steps"]):
        model.train()
        x = torch.as_tensor(np.random.randn(cfg["data"]["batch_size"], cfg["data"]["length"], 256).astype("float32")).to(device)
        y = torch.as_tensor(np.random.randint(0, 40, cfg["data"]["batch_size"])).to(device)
        padding = torch.arange(cfg["data"]["length"], device=device)[None] >= torch.randint(64, 129, (len(x), 1), device=device)
        with torch.amp.autocast(device_type=device.type, dtype=torch.bfloat16, enabled=cfg["trainer"]["precision"] == "bf16"):
            loss = criterion(model(x, padding), y)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        norm = nn.utils.clip_grad_norm_(model.parameters(), cfg["trainer"]["clip"], error_if_nonfinite=True)
        optimizer.step()
        scheduler.step()
        ema.update_parameters(model)
        run.note(step=step, loss=float(loss), norm=float(norm), lr=scheduler.get_last_lr()[0], memory=torch.cuda.max_memory_allocated() / 2**20)
        if step % 25 == 24:
            torch.save({"model": model.state_dict(), "ema": ema.state_dict(), "optimizer": optimizer.state_dict(), "cfg": cfg}, run.folder / "last.ckpt")


if __name__ == "__main__":
    beside = pathlib.Path(__file__).with_suffix(".json")
    main(DEFAULTS | (json.loads(beside.read_text()) if beside.exists() else {}))

"""Answers about a recorded step, by the installed package or by the program."""
import contextlib
import json
import os
import shutil
import subprocess
import tempfile

import torch

from . import capture


def _beside_the_library():
    from .._errors import DeviceError
    from .._library import find_program

    try:
        return find_program()
    except DeviceError:
        return None


def _program():
    found = os.environ.get("MEMFATHOM_PROGRAM") or shutil.which("memfathom") or _beside_the_library()
    if not found:
        raise RuntimeError("the program memfathom is not in PATH; install it, or name it with MEMFATHOM_PROGRAM")
    return found


def _run(words):
    done = subprocess.run([_program(), *words], capture_output=True, text=True)
    if not done.stdout:
        raise RuntimeError(done.stderr.strip())
    return json.loads(done.stdout)


def _facts(gpu):
    """What the recorded step sees of a GPU of `memfathom gpus`."""
    if gpu is None:
        return None
    for row in _run(["gpus", "--format", "json"])["gpus"]:
        if row["name"] == gpu:
            facts = {"name": row["product"], "memory": row["memory_bytes"]}
            architecture = row["architecture"]
            if architecture.startswith("sm_"):
                facts["capability"] = divmod(int(architecture.removeprefix("sm_")), 10)
            return facts
    raise ValueError(f"{gpu} is not a GPU of `memfathom gpus`")


def job_of_trace(path, gpu=None):
    job = {"model": {"trace": os.path.abspath(path)}, "target": {"stack": {"version": torch.__version__.split("+")[0]}}}
    if gpu is not None:
        job["target"]["gpu"] = gpu
    return job


def estimate_trace(path, gpu=None):
    """The answer of `memfathom estimate` (docs/contract.md, section 4) as a dict."""
    job = job_of_trace(path, gpu)
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump(job, file)
        file.flush()
        return _run(["estimate", file.name, "--format", "json"])


def _call(model, batch):
    if isinstance(batch, dict):
        return model(**batch)
    return model(*batch) if isinstance(batch, (tuple, list)) else model(batch)


def _scalar(output):
    """The loss of an output that is one, has one, or is a plain tensor."""
    if isinstance(output, dict) and "loss" in output:
        return output["loss"]
    found = getattr(output, "loss", None)
    if found is not None:
        return found
    if isinstance(output, torch.Tensor):
        return output if output.dim() == 0 else output.float().mean()
    raise TypeError("the output is not a tensor and has no loss; give loss=lambda output: ...")


@contextlib.contextmanager
def recorded_job(model, example_batch, *, loss=None, optimizer=None, gpu=None):
    """A job about a training step of `model` on `example_batch`, which its forward takes: a tensor, a tuple or a dict.

    `loss(output)` makes a scalar of the output; without it, the output's own loss or the mean is taken. `optimizer` is an
    optimizer, or a function of the parameters (AdamW if absent); False runs the forward pass without gradients. The job's
    trace is removed at the end of the `with` block.
    """
    move = lambda value: value.to("cuda") if isinstance(value, torch.Tensor) else value
    on_gpu = lambda: torch.utils._pytree.tree_map(move, example_batch)
    if optimizer is None:
        optimizer = lambda parameters: torch.optim.AdamW(parameters, 1e-4)
    update = optimizer if isinstance(optimizer, torch.optim.Optimizer) else None

    def step():
        nonlocal update
        if optimizer is False:
            with torch.no_grad():
                _call(model, on_gpu())
            return
        if update is None:
            update = optimizer([p for p in model.parameters() if p.requires_grad])
        output = _call(model, on_gpu())
        (loss(output) if loss is not None else _scalar(output)).backward()
        update.step()
        update.zero_grad()

    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "step.jsonl.gz")
        capture(step, model, optimizer if update is not None else None, path=path, gpu=_facts(gpu))
        yield job_of_trace(path, gpu)


def estimate(model, example_batch, **options):
    """The answer about `recorded_job` as a dict (docs/contract.md, section 4)."""
    with recorded_job(model, example_batch, **options) as job:
        return estimate_trace(job["model"]["trace"], job["target"].get("gpu"))

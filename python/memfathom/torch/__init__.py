"""memfathom.torch: records the memory of PyTorch steps on a machine without a GPU.

    with memfathom.recording("step.jsonl.gz"):
        train()                                   # stops by itself after the second optimizer step

    memfathom.capture(step, model, optimizer, path="step.jsonl.gz")

The trace (docs/contract.md, section 5) is answered by `memfathom estimate --set model.trace=step.jsonl.gz`.
"""
import contextlib
import gc

import torch
from torch.optim import Optimizer

from . import checkpoints, distributed, gpu as pretended, libraries, pretrained
from .full import Limit
from .moving import give_back
from .patches import Patches
from .phases import Enough, Phases
from .recorder import Recorder


class Recording:
    """What was recorded: allocated peak, guesses, and the trace once it is written."""

    def __init__(self, recorder, phases, gpu):
        self._recorder, self._phases, self._gpu = recorder, phases, gpu
        self.enough = False

    @property
    def steps(self):
        return max(self._phases.steps.values(), default=0)

    def outlives(self, error):
        """Whether the recording is complete although the script ended with this error."""
        return self._phases.later.failed(error)

    @property
    def was_full(self):
        """Whether the script was told that the GPU is full."""
        return self._recorder.limit is not None and self._recorder.limit.reached

    @property
    def allocated_peak_bytes(self):
        return self._recorder.peak

    @property
    def guesses(self):
        return [what for what in self._recorder.guesses]

    @property
    def operations(self):
        return self._recorder.operations

    @property
    def events(self):
        return len(self._recorder.events)

    def write(self, path, also=None):
        header = {"steps": self.steps, "gpu": {"name": self._gpu["name"], "capability": "%d.%d" % tuple(self._gpu["capability"])}, "world": self._gpu.get("world", 1)}
        header.update(also or {})
        if not self.steps and not self._phases.passes:
            self._count_calls()
        self._recorder.write(path, header, self._phases.iteration_of)

    def _count_calls(self):
        """Nothing was trained: a pass without gradients is the forward pass, each one an iteration."""
        calls = 0
        for event in self._recorder.events:
            if event["op"] == "phase" and event["name"] in ("evaluate", "forward"):
                event["name"], calls = "forward", calls + 1
                event["call"] = calls
            elif event["op"] == "phase":
                event["call"] = calls
            if event.get("phase") == "evaluate":
                event["phase"] = "forward"


@contextlib.contextmanager
def recording(path=None, *, iterations=2, gpu=None, world=1, stop=True, limited=True):
    """Records what is done inside. With `stop` it ends after `iterations` optimizer steps, before the next forward pass.

    With `limited`, code that catches torch.OutOfMemoryError gets it where tensors exceed the GPU; other code never does.
    """
    gpu = dict(pretended.A100 | (gpu or {}), world=world)
    gpu["count"] = world
    recorder, patches, originals = Recorder(), Patches(), []
    recorder.limit = Limit(recorder, gpu["memory"]) if limited else None
    phases = Phases(recorder, iterations, stop)
    recorded = Recording(recorder, phases, gpu)
    gc.collect()
    try:
        pretended.pretend(recorder, gpu, patches, originals)
        distributed.pretend_world(recorder, world, patches)
        libraries.prepare(recorder, patches)
        pretrained.do_without_weights(recorder, patches)
        checkpoints.remember(recorder, patches)
        phases.install(patches)
        with recorder:
            try:
                yield recorded
            except Enough:
                recorded.enough = True
            except Exception as error:
                if not phases.later.failed(error):
                    raise
        phases.later.conclude()
        recorder.events = list(recorder.events)
        if path is not None:
            recorded.write(path)
    finally:
        recorder.events = list(recorder.events)
        patches.restore()
        give_back(originals)


def capture(step, model=None, optimizer=None, *, path=None, iterations=2, gpu=None):
    """Runs `step()` `iterations` times. A model on the CPU is moved to the pretended GPU and given back afterwards."""
    with recording(path, iterations=iterations, gpu=gpu, stop=False) as recorded:
        if isinstance(optimizer, Optimizer):
            recorded._phases.made_optimizer(optimizer)
        for module in model if isinstance(model, (list, tuple)) else [model]:
            if module is not None:
                module.to("cuda")
        for _ in range(iterations):
            step()
    return recorded


def estimate(model, example_batch, **options):
    """The memory of a training step of a plain module; see memfathom.torch.answer.estimate."""
    from .answer import estimate as answered

    return answered(model, example_batch, **options)

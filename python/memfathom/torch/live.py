"""python -m memfathom.torch.live [-o snapshot.pickle] [--iterations N] [--told FILE] (train.py | -m module) [its arguments]

Runs a script unmodified on the real GPU with PyTorch's own record of its allocator (torch.cuda.memory._record_memory_history), and
stops before the step after the last one asked for. The record is a memory snapshot; what the GPU says of its memory is told as JSON.
"""
from __future__ import annotations

import json
import os
import runpy
import sys
import threading
import time
from typing import Any, Optional

import torch
from torch.optim import optimizer as optimizers

MAX_ENTRIES = 2_000_000  # events of the allocator's history
INTERVAL = 0.02          # seconds between two readings of the GPU's memory
NO_GPU = 5               # exit code


class Enough(BaseException):
    """As many steps as were asked for are done."""


class Steps:
    """Counts the steps of optimizers and stops the script before a further forward pass."""

    def __init__(self, wanted: int):
        self.wanted, self.counts, self.depth, self.in_step = wanted, {}, 0, 0
        self._handles: list[Any] = []

    @property
    def done(self) -> int:
        return max(self.counts.values(), default=0)

    def _is_enough(self) -> bool:
        counts = self.counts.values()
        return bool(counts) and (min(counts) >= self.wanted or max(counts) >= 5 * self.wanted)

    def __enter__(self) -> "Steps":
        call = torch.nn.Module._call_impl
        self._call = call

        def called(module: torch.nn.Module, *args: Any, **kwargs: Any) -> Any:
            if not self.depth and not self.in_step and self._is_enough():
                raise Enough
            self.depth += 1
            try:
                return call(module, *args, **kwargs)
            finally:
                self.depth -= 1

        torch.nn.Module._call_impl = called  # type: ignore[method-assign]
        self._handles = [optimizers.register_optimizer_step_pre_hook(self._before), optimizers.register_optimizer_step_post_hook(self._after)]
        return self

    def __exit__(self, *error: Any) -> None:
        torch.nn.Module._call_impl = self._call  # type: ignore[method-assign]
        for handle in self._handles:
            handle.remove()

    def _before(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        self.in_step += 1

    def _after(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        self.in_step -= 1
        self.counts[id(optimizer)] = self.counts.get(id(optimizer), 0) + 1


class GpuMemory(threading.Thread):
    """The most that the GPU says is used on it, by everybody, while the script runs."""

    def __init__(self, backend: Any):
        super().__init__(daemon=True)
        self._backend, self._end, self.peak, self.total = backend, threading.Event(), 0, 0

    def run(self) -> None:
        while not self._end.wait(INTERVAL):
            self.read()

    def read(self) -> int:
        free, self.total = self._backend.mem_get_info()
        self.peak = max(self.peak, self.total - free)
        return self.total - free

    def end(self) -> None:
        self.read()
        self._end.set()
        self.join()


def observed(run: Any, iterations: int, path: str, backend: Any = torch.cuda) -> dict[str, Any]:
    """Calls `run()` and tells what the allocator and the GPU saw; `path` receives the snapshot."""
    backend.init()
    memory = GpuMemory(backend)
    before = memory.read()
    backend.memory._record_memory_history(max_entries=MAX_ENTRIES)
    memory.start()
    ended = "by itself"
    with Steps(iterations) as steps:
        try:
            run()
        except Enough:
            ended = "after its steps"
        except backend.OutOfMemoryError as error:
            ended = f"out of memory: {str(error).splitlines()[0]}"
    backend.synchronize()
    memory.end()
    backend.memory._dump_snapshot(path)
    backend.memory._record_memory_history(enabled=None)
    return {"steps": steps.done, "ended": ended, "fits": not ended.startswith("out of memory"), "gpu": backend.get_device_name(), "memory_bytes": memory.total,
            "allocated_peak_bytes": backend.max_memory_allocated(), "reserved_peak_bytes": backend.max_memory_reserved(), "device_before_bytes": before,
            "device_peak_bytes": memory.peak, "metric": "mem-get-info", "torch": torch.__version__.split("+")[0], "cuda": torch.version.cuda}


def options_of(words: list[str]) -> tuple[dict[str, str], list[str]]:
    options = {"-o": "snapshot.pickle", "--iterations": "2", "--told": "", "--world": "1", "--gpu": "{}"}
    while words and words[0] in options:
        if len(words) < 2:
            raise SystemExit(f"{words[0]} needs a value")
        options[words[0]], words = words[1], words[2:]
    if not words:
        raise SystemExit("capture --live needs a script")
    return options, words


def started(words: list[str]) -> None:
    is_module = words[0] == "-m"
    words = words[1:] if is_module else words
    sys.argv = words
    sys.path.insert(0, os.getcwd() if is_module else os.path.dirname(os.path.abspath(words[0])))
    if is_module:
        runpy.run_module(words[0], run_name="__main__", alter_sys=True)
    else:
        runpy.run_path(words[0], run_name="__main__")


def main(arguments: Optional[list[str]] = None) -> None:
    options, words = options_of(sys.argv[1:] if arguments is None else arguments)
    if not torch.cuda.is_available():
        print("memfathom: PyTorch sees no GPU; without --live the script is recorded without one", file=sys.stderr, flush=True)
        os._exit(NO_GPU)
    begin, code = time.monotonic(), 0
    told: dict[str, Any] = {}
    try:
        told = observed(lambda: started(words), int(options["--iterations"]), options["-o"])
        told["seconds"] = round(time.monotonic() - begin, 1)
    except SystemExit as end:
        code = 2 if end.code else 0
        told["ended"] = f"by itself with exit code {end.code}"
    except Exception:
        import traceback

        traceback.print_exc()
        code = 2
    if options["--told"]:
        with open(options["--told"], "w", encoding="utf-8") as file:
            json.dump(told, file)
    sys.stdout.flush()
    os._exit(code)


if __name__ == "__main__":
    main()

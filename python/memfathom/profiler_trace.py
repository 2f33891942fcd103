"""python -m memfathom.profiler_trace PROFILE.json[.gz] [-o step.jsonl.gz]: the memory events of torch.profiler as a trace.

    with torch.profiler.profile(profile_memory=True, with_stack=True) as profile:
        train_two_steps()
    profile.export_chrome_trace("profile.json")

What `memfathom estimate step.jsonl.gz` then answers about is that run (docs/contract.md, section 5). PyTorch is not needed.
"""

from __future__ import annotations

import argparse
import collections
import gzip
import json
import sys
from typing import Any, Iterator, Optional

CPU = 0  # "Device Type" of PyTorch
BACKWARD = "autograd::engine::evaluate_function"
STEP, ZERO_GRAD = "Optimizer.step#", "Optimizer.zero_grad#"
NOT_A_SCRIPT = ("site-packages", "/torch/", "<", "/lib/python")


class NotAProfile(ValueError):
    """The file has no memory events of torch.profiler; the text says what to do."""


def read(path: str) -> list[dict[str, Any]]:
    """The events of the file in the order of time."""
    with gzip.open(path, "rt") if path.endswith(".gz") else open(path, encoding="utf-8") as file:
        try:
            document = json.load(file)
        except ValueError as error:
            raise NotAProfile(f"{path}: not JSON ({error}); export it with profile.export_chrome_trace") from None
    events = document.get("traceEvents") if isinstance(document, dict) else document
    if not isinstance(events, list):
        raise NotAProfile(f"{path}: there are no traceEvents; export it with profile.export_chrome_trace")
    found = [e for e in events if isinstance(e, dict) and isinstance(e.get("ts"), (int, float)) and e.get("ph") in ("X", "i")]
    return sorted(found, key=lambda e: (e["ts"], -e.get("dur", 0)))


def _memory_events(events: list[dict[str, Any]], path: str) -> tuple[list[dict[str, Any]], tuple[int, int]]:
    by_device = collections.defaultdict(list)
    for event in events:
        if event.get("name") == "[memory]" and "Bytes" in event.get("args", {}):
            by_device[(event["args"].get("Device Type", CPU), event["args"].get("Device Id", 0))].append(event)
    if not by_device:
        raise NotAProfile(f"{path}: there are no memory events; profile with torch.profiler.profile(profile_memory=True)")
    device = max(by_device, key=lambda d: (d[0] != CPU, len(by_device[d])))
    return by_device[device], device


class Ranges:
    """Which of the profile's ranges are open at a time; times are asked in rising order."""

    def __init__(self, events: list[dict[str, Any]]):
        self._coming = [e for e in events if e["ph"] == "X" and e.get("cat") in ("cpu_op", "user_annotation", "python_function")]
        self._next = 0
        self._open: dict[Any, list[dict[str, Any]]] = collections.defaultdict(list)

    def at(self, time: float) -> None:
        while self._next < len(self._coming) and self._coming[self._next]["ts"] <= time:
            event = self._coming[self._next]
            self._next += 1
            stack = self._open[event.get("tid")]
            self._close(stack, event["ts"])
            stack.append(event)
        for stack in self._open.values():
            self._close(stack, time)

    @staticmethod
    def _close(stack: list[dict[str, Any]], time: float) -> None:
        while stack and stack[-1]["ts"] + stack[-1].get("dur", 0) < time:
            stack.pop()

    def inner(self, thread: Any, category: str) -> Iterator[dict[str, Any]]:
        return (e for e in reversed(self._open[thread]) if e.get("cat") == category)

    def is_open(self, begin: str) -> bool:
        return any(e["name"].startswith(begin) for stack in self._open.values() for e in stack)


def _line(ranges: Ranges, thread: Any) -> Optional[str]:
    """`train.py:17` of the innermost frame that is the user's; profiles with with_stack=True have it."""
    for event in ranges.inner(thread, "python_function"):
        file, _, rest = event["name"].partition("(")
        number = rest.partition(")")[0]
        if file.endswith(".py") and number.isdecimal() and not any(part in file for part in NOT_A_SCRIPT):
            return f"{file.rsplit('/', 1)[-1]}:{number}"
    return None


def _phase(ranges: Ranges, before: str, is_free: bool) -> str:
    """Outside backward and step, a new tensor begins a forward pass; what is freed belongs to what was before."""
    if ranges.is_open(STEP):
        return "step"
    if ranges.is_open(BACKWARD):
        return "backward"
    return before if is_free and before != "load" or ranges.is_open(ZERO_GRAD) else "forward"


def converted(path: str) -> list[dict[str, Any]]:
    """The lines of the trace: a header, what was alive before, then one event for each of the profile's."""
    events = read(path)
    memory, (kind, index) = _memory_events(events, path)
    lines: list[dict[str, Any]] = [{}, {"op": "phase", "name": "load", "iteration": 0}]
    ids: dict[int, int] = {}
    count = earlier = 0
    for event in memory:  # what is freed without having been allocated was there before
        address, size = event["args"].get("Addr"), event["args"]["Bytes"]
        if size > 0:
            ids[address] = 0
        elif ids.pop(address, None) is None:
            count, earlier = count + 1, earlier - size
            lines.append({"op": "alloc", "id": count, "bytes": -size, "phase": "load", "name": "before the profile"})
            event["known"] = count
    first = memory[0]["args"]
    rest = first.get("Total Allocated", first["Bytes"]) - first["Bytes"] - earlier
    guesses = []
    if rest > 0:
        count += 1
        lines.append({"op": "alloc", "id": count, "bytes": rest, "phase": "load", "name": "before the profile", "tag": "parameters"})
        guesses.append({"what": "what was allocated before the profile began, and not freed in it, is taken as one block", "times": 1, "bytes": 0})
    if kind == CPU:
        guesses.append({"what": "the profile is of the CPU: kernels of a GPU have other work areas", "times": 1, "bytes": 0})
    ranges, phase, iteration = Ranges(events), "load", 1
    ids.clear()
    for event in memory:
        ranges.at(event["ts"])
        now = _phase(ranges, phase, event["args"]["Bytes"] < 0)
        if now != phase:
            iteration += phase == "step"
            lines.append({"op": "phase", "name": now, "iteration": iteration})
            phase = now
        address, size, thread = event["args"].get("Addr"), event["args"]["Bytes"], event.get("tid")
        if size < 0:
            lines.append({"op": "free", "id": event.get("known") or ids.pop(address), "phase": phase})
            continue
        count += 1
        ids[address] = count
        operation = next((e["name"] for e in ranges.inner(thread, "cpu_op")), "unknown")
        line = {"op": "alloc", "id": count, "bytes": size, "phase": phase, "name": operation.replace("::", ".")}
        for key, value in (("line", _line(ranges, thread)), ("tag", "gradients" if operation.startswith("torch::autograd::AccumulateGrad") else None)):
            if value:
                line[key] = value
        lines.append(line)
    lines[0] = {"schema": "memfathom.trace/1", "precision": "fp32", "recorded_with": "torch.profiler", "device": "cpu" if kind == CPU else f"cuda:{index}", "guesses": guesses}
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(prog="memfathom.profiler_trace", description="the memory events of a torch.profiler export as a trace for memfathom estimate")
    parser.add_argument("profile")
    parser.add_argument("-o", dest="path", default="step.jsonl.gz")
    options = parser.parse_args()
    try:
        lines = converted(options.profile)
    except (NotAProfile, OSError) as error:
        raise SystemExit(f"{error}") from None
    with gzip.open(options.path, "wt") if options.path.endswith(".gz") else open(options.path, "w") as out:
        out.writelines(json.dumps(line, separators=(",", ":")) + "\n" for line in lines)
    print(f"{options.path}: {sum(line.get('op') == 'alloc' for line in lines)} allocations", file=sys.stderr)


if __name__ == "__main__":
    main()

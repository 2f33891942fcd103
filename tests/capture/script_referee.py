"""PyTorch's own record of a whole script, run on the CPU, against the recording of the same script.

    script_referee.py [--all] [name ...]     # of scripts/; prints both peaks and the sizes that only one of them has

The script runs twice: really, with "cuda" meaning the CPU, under torch.profiler; and recorded. Host tensors are CPU memory too, and
some CPU kernels have buffers of their own, so this says where to look; cpu_referee.py has the steps that must agree exactly.
"""
import collections
import gzip
import json
import os
import re
import runpy
import subprocess
import sys
import tempfile

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "scripts")
SHOWN = 8


def really(path, out):
    """Runs the script on the CPU for two steps; writes its allocations."""
    import torch
    from memfathom.torch.live import Enough, Steps
    from torch.overrides import TorchFunctionMode

    def on_cpu(value):
        if isinstance(value, str) and value.split(":")[0] == "cuda" or isinstance(value, torch.device) and value.type == "cuda":
            return "cpu"
        return value

    class Cpu(TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            if func is torch.Tensor.cuda:
                return args[0]
            if func is torch.Tensor.pin_memory:
                return args[0]
            return func(*map(on_cpu, args), **{k: on_cpu(v) for k, v in (kwargs or {}).items()})

    autocast = torch.autocast.__init__
    torch.autocast.__init__ = lambda self, kind="cpu", dtype=None, *a, **k: autocast(self, "cpu", torch.bfloat16 if dtype is torch.float16 else dtype, *a, **k)
    torch.nn.Module.cuda = lambda module, device=None: module
    to = torch.nn.Module.to
    torch.nn.Module.to = lambda module, *a, **k: to(module, *map(on_cpu, a), **{n: on_cpu(v) for n, v in k.items()})
    for name in ("synchronize", "empty_cache", "set_device", "reset_peak_memory_stats", "manual_seed_all"):
        setattr(torch.cuda, name, lambda *a, **k: None)
    sys.argv = [path]
    sys.path.insert(0, os.path.dirname(path))
    steps = Steps(2)
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], profile_memory=True) as profile, steps, Cpu():
        mark = steps._after

        def after(*args):
            mark(*args)
            torch.autograd.profiler.record_function("memfathom: step").__enter__().__exit__(None, None, None)

        steps._after = after
        try:
            runpy.run_path(path, run_name="__main__")
        except Enough:
            pass
    changes = [e.nbytes() for e in profile.profiler.kineto_results.events() if e.name() == "[memory]"]
    with open(out, "w") as file:
        json.dump(changes, file)


def sizes_and_peak(changes):
    live = peak = 0
    for change in changes:
        live += change
        peak = max(peak, live)
    return collections.Counter(c for c in changes if c > 0), peak


def recorded(path, folder, world):
    out = os.path.join(folder, "step.jsonl.gz")
    subprocess.run([sys.executable, "-m", "memfathom._with_torch", "script", "-o", out, "--world", world, path], check=True, capture_output=True, cwd=folder)
    alive, changes = {}, []
    with gzip.open(out, "rt") as file:
        for event in map(json.loads, list(file)[1:]):
            if event["op"] == "alloc":
                alive[event["id"]] = event["bytes"]
                changes.append(event["bytes"])
            elif event["op"] == "free":
                changes.append(-alive.pop(event["id"]))
    return changes


def main(words):
    if words[0] == "--really":
        return really(words[1], words[2])
    for name in words:
        path = os.path.join(FOLDER, name + ".py")
        with tempfile.TemporaryDirectory() as folder:
            out = os.path.join(folder, "really.json")
            done = subprocess.run([sys.executable, os.path.abspath(__file__), "--really", path, out], capture_output=True, text=True, cwd=folder)
            if not os.path.exists(out):
                print(f"{name}: does not run on the CPU: {(done.stderr.strip().splitlines() or ['?'])[-1][:150]}", flush=True)
                continue
            real, real_peak = sizes_and_peak(json.load(open(out)))
            fake, fake_peak = sizes_and_peak(recorded(path, folder, (re.search(r"^# world: (\d+)", open(path).read(), re.M) or [0, "1"])[1]))
        print(f"{name}: CPU peak {real_peak / 2**20:.2f} MiB, recorded {fake_peak / 2**20:.2f} MiB: {100 * (fake_peak / real_peak - 1):+.1f} %")
        for title, only in (("only real", real - fake), ("only recorded", fake - real)):
            largest = sorted(only.items(), key=lambda item: -item[0] * item[1])[:SHOWN]
            print(f"  {title}: " + ", ".join(f"{count} x {size:,}" for size, count in largest), flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

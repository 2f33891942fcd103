"""Tests of memfathom.torch.live: the parts of `capture --live` that need no GPU, with the host's memory as backend. Needs torch.

The backend below is PyTorch's CPU allocator, whose real allocations torch.profiler notes, in the form of the allocator's history.
Nothing here stands for a GPU's driver; `capture --live` as a whole has not run on a GPU.
"""
import json
import os
import pickle
import subprocess
import sys
import tempfile
import unittest

import torch

from memfathom.torch import live

PROGRAM = os.environ.get("MEMFATHOM_PROGRAM")


class HostAllocator:
    """PyTorch's CPU allocator behind the names that live.observed() asks."""

    OutOfMemoryError = torch.OutOfMemoryError

    def __init__(self):
        self.memory, self._profile, self._changes = self, None, []

    def init(self):
        pass

    synchronize = init

    def get_device_name(self):
        return "host"

    def mem_get_info(self):
        with open("/proc/meminfo") as file:
            figures = {line.split(":")[0]: int(line.split()[1]) << 10 for line in file}
        return figures["MemAvailable"], figures["MemTotal"]

    def _record_memory_history(self, enabled="all", max_entries=0):
        if enabled:
            self._profile = torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], profile_memory=True)
            self._profile.start()

    def _events(self):
        if self._profile.profiler.kineto_results is None:
            self._profile.stop()
            self._changes = [e.nbytes() for e in self._profile.profiler.kineto_results.events() if e.name() == "[memory]"]
        return self._changes

    def max_memory_allocated(self):
        live = peak = 0
        for change in self._events():
            live += change
            peak = max(peak, live)
        return peak

    max_memory_reserved = max_memory_allocated

    def _dump_snapshot(self, path):
        alive, trace = {}, []
        for i, change in enumerate(self._events()):
            if change > 0:
                alive.setdefault(change, []).append(512 * (i + 1))
                trace.append({"action": "alloc", "addr": 512 * (i + 1), "size": change, "stream": 0, "frames": []})
            elif alive.get(-change):
                address = alive[-change].pop()
                trace += [{"action": action, "addr": address, "size": -change, "stream": 0, "frames": []} for action in ("free_requested", "free_completed")]
        with open(path, "wb") as file:
            pickle.dump({"segments": [], "device_traces": [trace]}, file, protocol=4)


class Training:
    def __init__(self, fails_at=None):
        self.net, self.fails_at, self.steps = torch.nn.Linear(512, 512), fails_at, 0
        self.update = torch.optim.Adam(self.net.parameters())

    def __call__(self):
        while True:
            if self.steps == self.fails_at:
                raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 1.00 GiB.\nmore")
            self.net(torch.ones(64, 512)).sum().backward()
            self.update.step()
            self.update.zero_grad()
            self.steps += 1


class ObservedTest(unittest.TestCase):
    def observe(self, training, folder):
        return live.observed(training, 2, os.path.join(folder, "snapshot.pickle"), HostAllocator())

    def test_peaks_and_steps_are_told(self):
        with tempfile.TemporaryDirectory() as folder:
            told = self.observe(Training(), folder)
        self.assertEqual((told["steps"], told["ended"], told["fits"]), (2, "after its steps", True))
        self.assertGreater(told["allocated_peak_bytes"], 3 * 512 * 512 * 4)  # gradients and both states
        self.assertGreaterEqual(told["device_peak_bytes"], told["device_before_bytes"] - (1 << 30))
        self.assertEqual(json.loads(json.dumps(told)), told)

    def test_running_out_of_memory_is_an_observation(self):
        with tempfile.TemporaryDirectory() as folder:
            told = self.observe(Training(fails_at=1), folder)
        self.assertEqual((told["steps"], told["fits"]), (1, False))
        self.assertEqual(told["ended"], "out of memory: CUDA out of memory. Tried to allocate 1.00 GiB.")

    @unittest.skipUnless(PROGRAM, "MEMFATHOM_PROGRAM does not name the program")
    def test_the_program_reads_the_history(self):
        with tempfile.TemporaryDirectory() as folder:
            told = self.observe(Training(), folder)
            done = subprocess.run([PROGRAM, "explain", os.path.join(folder, "snapshot.pickle"), "--format", "json"], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertAlmostEqual(json.loads(done.stdout)["alive"]["bytes"], told["allocated_peak_bytes"], delta=1 << 16)


class CommandTest(unittest.TestCase):
    SCRIPT = "import sys, torch\nprint(sys.argv[1:])\nnet = torch.nn.Linear(4, 2)\nraise ValueError('reached')\n"

    def test_options_end_where_the_script_begins(self):
        options, words = live.options_of(["-o", "a.pickle", "--iterations", "3", "train.py", "-o", "its.txt"])
        self.assertEqual((options["-o"], options["--iterations"], words), ("a.pickle", "3", ["train.py", "-o", "its.txt"]))

    def test_a_script_runs_as_its_main_module(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "train.py")
            with open(path, "w") as file:
                file.write(self.SCRIPT)
            done = subprocess.run([sys.executable, "-c", f"from memfathom.torch import live; live.started([{path!r}, '--lr', '1'])"], capture_output=True, text=True)
        self.assertIn("['--lr', '1']", done.stdout)
        self.assertIn("ValueError: reached", done.stderr)

    @unittest.skipUnless(PROGRAM and not torch.cuda.is_available(), "there is a GPU, or no program")
    def test_without_a_gpu_the_program_says_so(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "train.py")
            with open(path, "w") as file:
                file.write(self.SCRIPT)
            done = subprocess.run([PROGRAM, "--db", os.path.join(folder, "db"), "capture", "--live", "--python", sys.executable, path], capture_output=True, text=True)
        self.assertEqual(done.returncode, 4)
        self.assertIn("needs a GPU that PyTorch sees", done.stderr)
        self.assertNotIn("reached", done.stderr)


if __name__ == "__main__":
    unittest.main()

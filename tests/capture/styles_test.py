"""Tests of what scripts ask of a GPU, of a GPU that is full, and of the user's files. Needs torch, no GPU."""
import gzip
import hashlib
import json
import os
import subprocess
import sys
import tempfile
import textwrap
import unittest

import torch
import torch.nn as nn
import torch.nn.functional as F

import memfathom.torch as recorded
from memfathom.torch import vary

PROGRAM = os.environ.get("MEMFATHOM_PROGRAM")
SMALL = {"name": "small", "capability": (8, 0), "memory": 2 << 30}


def recorded_lines(work, **options):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "step.jsonl")
        with recorded.recording(path, **options):
            work()
        return vary.lines_of(path)


def sizes(lines):
    return [e["bytes"] for e in lines if e.get("op") == "alloc"]


class QuestionsTest(unittest.TestCase):
    def test_memory_figures_follow_the_recording(self):
        def work():
            kept = torch.zeros(1 << 20, device="cuda")
            torch.zeros(1 << 22, device="cuda")
            self.assertEqual(torch.cuda.memory_allocated(), 4 << 20)
            self.assertEqual(torch.cuda.max_memory_allocated(), 20 << 20)
            torch.cuda.reset_peak_memory_stats()
            self.assertEqual(torch.cuda.max_memory_reserved(), kept.nbytes)
            free, total = torch.cuda.mem_get_info()
            self.assertEqual(total - free, 4 << 20)
            stats = torch.cuda.memory_stats()
            self.assertEqual((stats["allocated_bytes.all.current"], stats["inactive_split_bytes.all.peak"], stats["num_ooms"]), (4 << 20, 0, 0))
            self.assertIn("Allocated memory", torch.cuda.memory_summary(abbreviated=True))

        recorded_lines(work)

    def test_lists_of_the_gpus_numbers_become_tensors(self):
        def work():
            largest = torch.arange(5, device="cuda").max()
            self.assertEqual(torch.tensor([[largest], [largest]], device="cuda").shape, (2, 1))
            self.assertEqual(torch.as_tensor([largest, largest]).tolist(), [4, 4])

        recorded_lines(work)

    def test_properties_are_those_of_the_asked_gpu(self):
        def work():
            properties = torch.cuda.get_device_properties(0)
            self.assertEqual((properties.name, properties.total_memory), ("small", 2 << 30))
            self.assertEqual(torch.cuda.get_device_capability(), (8, 0))

        recorded_lines(work, gpu=SMALL)


class FullTest(unittest.TestCase):
    def test_code_that_catches_the_error_is_told(self):
        def work():
            size = 1 << 30
            while True:
                try:
                    self.assertEqual(torch.empty(size, device="cuda").numel(), 1 << 28)
                    return
                except torch.cuda.OutOfMemoryError:
                    size //= 2

        lines = recorded_lines(work, gpu=SMALL)
        self.assertEqual(max(sizes(lines)), 1 << 30)
        self.assertIn("told so", lines[0]["guesses"][0]["what"])

    def test_other_code_is_recorded_beyond_the_gpu(self):
        self.assertEqual(sizes(recorded_lines(lambda: torch.empty(1 << 30, device="cuda"), gpu=SMALL)), [4 << 30])


class OperationsTest(unittest.TestCase):
    def test_the_math_fallback_too_gets_a_mask_of_numbers(self):
        def work():
            q, k = torch.zeros(1, 2, 24, 8, device="cuda", dtype=torch.bfloat16), torch.zeros(1, 1, 24, 8, device="cuda", dtype=torch.bfloat16)
            F.scaled_dot_product_attention(q, k, k, attn_mask=torch.ones(1, 1, 24, 24, device="cuda", dtype=torch.bool))

        self.assertEqual(sizes(recorded_lines(work)).count(24 * 24 * 2), 1)

    def test_flex_attention_keeps_no_scores(self):
        from torch.nn.attention import flex_attention as flex

        def work():
            q = torch.randn(1, 2, 512, 64, device="cuda", requires_grad=True)
            flex.flex_attention(q, q, q, score_mod=lambda s, b, h, i, j: s).sum().backward()
            self.assertEqual(q.grad.shape, q.shape)

        lines = recorded_lines(work)
        self.assertIn(2 * 512 * 4, sizes(lines))
        self.assertLess(max(sizes(lines)), 2 * 512 * 512 * 4)

    def test_forward_mode_derivatives_are_recorded(self):
        def work():
            w = torch.randn(64, device="cuda")
            _, tangent = torch.func.jvp(lambda b: (b * b).sum(), (w,), (torch.ones_like(w),))
            self.assertEqual(tangent.shape, ())
            self.assertEqual(torch.func.hessian(lambda b: b.pow(3).sum())(w).shape, (64, 64))

        recorded_lines(work)

    def test_copies_below_autograd_are_recorded(self):
        def work():
            with torch.inference_mode():
                self.assertEqual(torch.ones(8).to("cuda").device.type, "cuda")
            with torch._C._AutoDispatchBelowAutograd():
                self.assertEqual(torch.ones(8).to("cuda").device.type, "cuda")

        recorded_lines(work)


class ProfileTest(unittest.TestCase):
    """torch.profiler's export as a trace; the profile is a real one, of the CPU."""

    def profile(self, folder):
        model = nn.Sequential(nn.Linear(256, 512), nn.ReLU(), nn.Linear(512, 10))
        optimizer = torch.optim.Adam(model.parameters())
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], profile_memory=True, with_stack=True) as profile:
            for _ in range(2):
                F.cross_entropy(model(torch.randn(32, 256)), torch.zeros(32, dtype=torch.int64)).backward()
                optimizer.step()
                optimizer.zero_grad()
        path = os.path.join(folder, "profile.json")
        profile.export_chrome_trace(path)
        changes = [e.nbytes() for e in profile.profiler.kineto_results.events() if e.name() == "[memory]"]
        return path, changes

    def convert(self, folder):
        path, changes = self.profile(folder)
        out = os.path.join(folder, "step.jsonl")
        done = subprocess.run([sys.executable, "-m", "memfathom.profiler_trace", path, "-o", out], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        return out, changes

    def test_every_event_is_kept_with_its_phase(self):
        with tempfile.TemporaryDirectory() as folder:
            out, changes = self.convert(folder)
            lines = vary.lines_of(out)
        inside = [e for e in lines[1:] if e["op"] == "alloc" and e.get("name") != "before the profile"]
        self.assertEqual([e["bytes"] for e in inside], [c for c in changes if c > 0])
        self.assertEqual(sum(e["op"] == "free" for e in lines[1:]), sum(c < 0 for c in changes))
        phases = [(e["name"], e["iteration"]) for e in lines[1:] if e["op"] == "phase"]
        self.assertEqual(phases[:7], [("load", 0), ("forward", 1), ("backward", 1), ("step", 1), ("forward", 2), ("backward", 2), ("step", 2)])
        self.assertIn("aten.addmm", {e["name"] for e in inside})
        self.assertTrue(any(e.get("line", "").startswith("styles_test.py:") for e in inside))

    @unittest.skipUnless(PROGRAM, "MEMFATHOM_PROGRAM does not name the program")
    def test_the_program_reads_it(self):
        with tempfile.TemporaryDirectory() as folder:
            out, _ = self.convert(folder)
            done = subprocess.run([PROGRAM, "--db", os.path.join(folder, "db"), "estimate", out, "--gpu", "rtx-4090", "--format", "json"], capture_output=True, text=True)
            self.assertEqual(done.returncode, 0, done.stderr)
        self.assertTrue(any("of the CPU" in sentence for sentence in json.loads(done.stdout)["assumptions"]), done.stdout)

    def test_a_profile_without_memory_is_refused(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "profile.json")
            with open(path, "w") as file:
                json.dump({"traceEvents": [{"ph": "X", "ts": 1, "dur": 2, "name": "aten::add"}]}, file)
            done = subprocess.run([sys.executable, "-m", "memfathom.profiler_trace", path], capture_output=True, text=True, cwd=folder)
        self.assertEqual(done.returncode, 1)
        self.assertIn("profile_memory=True", done.stderr)


def state_of(folder):
    """Names, sizes, times and contents of files."""
    found = {}
    for at, folders, names in os.walk(folder):
        folders[:] = [f for f in folders if f != "__pycache__"]
        for name in names:
            path = os.path.join(at, name)
            with open(path, "rb") as file:
                found[os.path.relpath(path, folder)] = (os.stat(path).st_mtime_ns, hashlib.sha256(file.read()).hexdigest())
    return found


class UntouchedTest(unittest.TestCase):
    SCRIPT = """
        import helper, torch
        model = helper.make().cuda()
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
        for i in range(100):
            model(torch.randn(8, 1024, device="cuda")).sum().backward(); optimizer.step(); torch.save(model.state_dict(), "last.pt")
        """

    def run_script(self, folder, script, *words):
        with open(os.path.join(folder, "train.py"), "w") as file:
            file.write(textwrap.dedent(script))
        with open(os.path.join(folder, "helper.py"), "w") as file:
            file.write("import torch\nmake = lambda: torch.nn.Linear(1024, 1024)\n")
        with open(os.path.join(folder, "last.pt"), "w") as file:
            file.write("of an earlier run")
        before = state_of(folder)
        done = subprocess.run([sys.executable, "-m", "memfathom._with_torch", "script", "-o", os.path.join(tempfile.gettempdir(), "untouched.jsonl.gz"), *words, "train.py"], capture_output=True, text=True, cwd=folder)
        return done, before

    def test_the_scripts_files_stay_as_they_are(self):
        with tempfile.TemporaryDirectory() as folder:
            done, before = self.run_script(folder, self.SCRIPT)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(state_of(folder), before)
            self.assertFalse(os.path.exists(os.path.join(folder, "__pycache__")))

    def test_the_environment_stays_as_it_is(self):
        """Packages of the environment by their names and times; reading all contents would take minutes."""
        packages = os.path.dirname(os.path.dirname(torch.__file__))
        seen = lambda: {e.path: e.stat().st_mtime_ns for d in (packages, os.path.dirname(torch.__file__), os.path.dirname(nn.__file__)) for e in os.scandir(d) if e.name != "__pycache__"}
        before = seen()
        with tempfile.TemporaryDirectory() as folder:
            self.run_script(folder, self.SCRIPT)
        self.assertEqual(seen(), before)

    def test_a_script_that_raises_within_a_library_ends_with_its_own_traceback(self):
        with tempfile.TemporaryDirectory() as folder:
            done, _ = self.run_script(folder, "import torch\ntorch.nn.Linear(4, 4).cuda()(torch.zeros(2, 5, device='cuda'))\n")
        self.assertEqual(done.returncode, 2)
        lines = done.stderr.splitlines()
        self.assertEqual(lines[0], "Traceback (most recent call last):")
        self.assertIn("train.py", lines[1])
        self.assertRegex(lines[-2], "^RuntimeError: ")
        self.assertNotIn("memfathom", "".join(lines[:-1]))

    def test_a_script_that_gives_up_on_a_full_gpu_is_recorded_all_the_same(self):
        script = """
            import sys, torch
            try:
                model = torch.nn.Linear(1 << 15, 1 << 15).cuda()
                optimizer = torch.optim.SGD(model.parameters(), 0.1)
                for i in range(100):
                    model(torch.randn(8, 1 << 15, device="cuda")).sum().backward(); optimizer.step()
            except torch.cuda.OutOfMemoryError:
                sys.exit("the GPU is too small")
            """
        with tempfile.TemporaryDirectory() as folder:
            done, _ = self.run_script(folder, script, "--gpu", json.dumps(SMALL))
        self.assertEqual(done.returncode, 0, done.stderr)
        with gzip.open(os.path.join(tempfile.gettempdir(), "untouched.jsonl.gz"), "rt") as file:
            self.assertIn('"bytes":4294967296', file.read())


if __name__ == "__main__":
    unittest.main()

"""Tests of memfathom.torch, and of `memfathom capture` where MEMFATHOM_PROGRAM names the program. Needs torch, no GPU."""
import gzip
import json
import os
import pickle
import subprocess
import sys
import tempfile
import textwrap
import unittest

import torch
import torch.nn as nn
import torch.nn.functional as F

import memfathom
import memfathom._library
import memfathom.torch as recorded

PROGRAM = os.environ.get("MEMFATHOM_PROGRAM")
HERE = os.path.dirname(os.path.abspath(__file__))


def lines_of(path):
    with (gzip.open if path.endswith(".gz") else open)(path, "rt") as file:
        return [json.loads(line) for line in file]


def recorded_lines(work, **options):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "step.jsonl")
        with recorded.recording(path, **options):
            work()
        return lines_of(path)


def train(net, make_batch, steps=3, loss=F.mse_loss, optimizer=lambda p: torch.optim.SGD(p, 0.1)):
    def work():
        model = net().cuda()
        update = optimizer(model.parameters())
        for _ in range(steps):
            x, y = make_batch()
            loss(model(x), y).backward()
            update.step()
            update.zero_grad()

    return work


def vectors():
    return torch.randn(8, 64, device="cuda"), torch.randn(8, 32, device="cuda")


class RecorderTest(unittest.TestCase):
    def test_every_free_belongs_to_an_allocation_and_happens_once(self):
        alive = set()
        for event in recorded_lines(train(lambda: nn.Linear(64, 32), vectors))[1:]:
            if event["op"] == "alloc":
                self.assertNotIn(event["id"], alive)
                alive.add(event["id"])
            elif event["op"] == "free":
                alive.remove(event["id"])

    def test_parameters_gradients_and_states_have_their_sizes_and_tags(self):
        lines = recorded_lines(train(lambda: nn.Linear(64, 32), vectors, optimizer=lambda p: torch.optim.Adam(p, 1e-3)))
        tagged = lambda tag: sorted({e["bytes"] for e in lines[1:] if e.get("tag") == tag})
        self.assertEqual(tagged("parameters"), [128, 8192])
        self.assertEqual(tagged("gradients"), [128, 8192])
        self.assertEqual(tagged("optimizer_state"), [128, 8192])

    def test_two_iterations_are_recorded_and_numbered(self):
        phases = [(e["name"], e["iteration"]) for e in recorded_lines(train(lambda: nn.Linear(64, 32), vectors, steps=9)) if e.get("op") == "phase"]
        self.assertEqual(phases, [("load", 0), ("forward", 1), ("backward", 1), ("step", 1), ("forward", 2), ("backward", 2), ("step", 2)])

    def test_inputs_made_before_the_forward_pass_belong_to_it(self):
        lines = recorded_lines(train(lambda: nn.Linear(64, 32), lambda: tuple(t.cuda() for t in (torch.randn(8, 64), torch.randn(8, 32)))))
        first_forward = next(i for i, e in enumerate(lines) if e.get("op") == "phase" and e["name"] == "forward")
        self.assertEqual(lines[first_forward + 1].get("tag"), "inputs")

    def test_convolutions_transforms_and_attention_are_described(self):
        def work():
            x = torch.randn(2, 4, 16, 16, device="cuda", requires_grad=True)
            y = nn.Conv2d(4, 8, 3).cuda()(x)
            z = torch.fft.irfft2(torch.fft.rfft2(x))
            q = torch.randn(1, 2, 32, 64, device="cuda", dtype=torch.bfloat16, requires_grad=True)
            (y.sum() + z.sum() + F.scaled_dot_product_attention(q, q, q, is_causal=True).float().sum()).backward()

        lines = recorded_lines(work)
        convolutions = [e["conv"] for e in lines if "conv" in e]
        self.assertEqual([c["kinds"] for c in convolutions], [["forward"], ["data_gradient", "weight_gradient"]])
        self.assertEqual(convolutions[0]["dtype"], "fp32")
        self.assertEqual([e["fft"]["kind"] for e in lines if "fft" in e][:2], ["real_to_complex", "complex_to_real"])
        attention = [e["attention"] for e in lines if "attention" in e]
        self.assertEqual([(a["kernel"], a["backward"], a["q"]) for a in attention], [("flash", False, [1, 2, 32, 64]), ("flash", True, [1, 2, 32, 64])])

    def test_an_older_gpu_takes_the_efficient_kernel(self):
        def work():
            q = torch.randn(1, 2, 32, 64, device="cuda", dtype=torch.float16)
            F.scaled_dot_product_attention(q, q, q)

        lines = recorded_lines(work, gpu={"name": "Tesla T4", "capability": (7, 5), "memory": 15 << 30})
        self.assertEqual([e["attention"]["kernel"] for e in lines if "attention" in e], ["efficient"])

    def test_modules_and_lines_are_attributed(self):
        lines = recorded_lines(train(lambda: nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 32)), vectors))
        forward = [e for e in lines if e.get("phase") == "forward" and e.get("name") == "aten.addmm"]
        self.assertEqual([e["module"] for e in forward[:2]], ["0", "2"])
        self.assertRegex(forward[0]["line"], r"^capture_test\.py:\d+$")

    def test_masks_of_data_have_their_true_size(self):
        def work():
            mask = torch.tensor([True, False, True, True]).cuda()
            self.assertEqual(torch.randn(4, 8, device="cuda")[mask].shape, (3, 8))
            self.assertEqual(int(mask.sum()), 3)

        self.assertEqual(recorded_lines(work)[0]["guesses"], [])

    def test_masks_of_a_network_are_guessed_and_said(self):
        def work():
            scores = nn.Linear(8, 1).cuda()(torch.randn(4, 8, device="cuda"))[:, 0]
            self.assertEqual(torch.nonzero(scores > 0).shape, (4, 1))

        guesses = recorded_lines(work)[0]["guesses"]
        self.assertEqual(len(guesses), 1)
        self.assertIn("nonzero", guesses[0]["what"])

    def test_the_reserve_of_a_recurrent_layer_is_a_guess_with_its_size(self):
        def work():
            out, _ = nn.LSTM(16, 32, batch_first=False).cuda()(torch.randn(5, 2, 16, device="cuda"))
            out.sum().backward()

        lines = recorded_lines(work)
        self.assertEqual([e["bytes"] for e in lines if "rnn" in e], [5 * 2 * 32 * 6 * 4])
        self.assertEqual(lines[0]["guesses"][0]["bytes"], 5 * 2 * 32 * 6 * 4)

    def test_a_model_on_the_cpu_is_given_back_unchanged(self):
        model = nn.Linear(64, 32)
        weight, before = model.weight, model.weight.detach().clone()
        optimizer = torch.optim.SGD(model.parameters(), 0.1)

        def step():
            model(torch.randn(8, 64, device=model.weight.device)).sum().backward()
            optimizer.step()
            optimizer.zero_grad()

        result = recorded.capture(step, model, optimizer)
        self.assertEqual(result.steps, 2)
        self.assertIs(model.weight, weight)
        self.assertEqual(model.weight.device.type, "cpu")
        self.assertTrue(torch.equal(model.weight, before))
        self.assertFalse(torch.cuda.is_available())

    def test_large_weights_of_the_host_have_no_memory(self):
        def work():
            model = nn.Linear(1 << 16, 1 << 16)  # 16 GiB
            self.assertEqual(model.cuda().weight.shape, (1 << 16, 1 << 16))

        self.assertIn(1 << 34, [e.get("bytes") for e in recorded_lines(work)])


    def test_a_loss_that_must_be_finite_is(self):
        def work():
            loss = nn.Linear(8, 1).cuda()(torch.randn(4, 8, device="cuda")).mean()
            self.assertTrue(bool(torch.isfinite(loss)))
            self.assertTrue(loss.isfinite().all().item())

        recorded_lines(work)

    def test_a_checkpoint_is_given_back_and_not_written(self):
        def work():
            model = nn.Linear(8, 4).cuda()
            with tempfile.TemporaryDirectory() as folder:
                path = os.path.join(folder, "last.pt")
                with open(path, "w") as file:
                    file.write("of an earlier run")
                torch.save({"model": model.state_dict(), "epoch": 3}, path)
                with open(path) as file:
                    self.assertEqual(file.read(), "of an earlier run")
                loaded = torch.load(path, map_location="cuda", weights_only=True)
            self.assertEqual(loaded["epoch"], 3)
            model.load_state_dict(loaded["model"])

        recorded_lines(work)

    def test_a_checkpoint_of_an_earlier_run_is_read(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "model.pt")
            torch.save(nn.Linear(8, 4).state_dict(), path)

            def work():
                model = nn.Linear(8, 4).cuda()
                model.load_state_dict(torch.load(path, map_location="cuda"))

            recorded_lines(work)

    def test_per_sample_gradients_have_their_sizes(self):
        def work():
            weight = torch.randn(16, device="cuda")
            one = torch.func.grad(lambda w, x: (w * x).sum().sin())
            self.assertEqual(torch.func.vmap(one, (None, 0))(weight, torch.randn(128, 16, device="cuda")).shape, (128, 16))

        self.assertIn(128 * 16 * 4, [e.get("bytes") for e in recorded_lines(work)])

    def test_a_sparse_matrix_takes_its_indices_and_values(self):
        def work():
            matrix = torch.sparse_coo_tensor(torch.tensor([[0, 1, 2], [1, 2, 0]]), torch.ones(3), (1000, 1000)).coalesce().cuda()
            x = torch.randn(1000, 8, device="cuda", requires_grad=True)
            torch.sparse.mm(matrix, x).sum().backward()
            self.assertEqual(x.grad.shape, (1000, 8))

        lines = recorded_lines(work)
        self.assertTrue({2 * 3 * 8, 3 * 4} <= {e.get("bytes") for e in lines})
        self.assertTrue(any("no shape function" in g["what"] for g in lines[0]["guesses"]))


class FrontTest(unittest.TestCase):
    """memfathom.estimate of a module; needs libmemfathom, which MEMFATHOM_LIBRARY or the build has."""

    def setUp(self):
        try:
            memfathom._library.find_library()
        except memfathom.DeviceError as error:
            self.skipTest(str(error))

    def test_a_module_and_a_batch_are_a_training_step(self):
        model = nn.Sequential(nn.Linear(1024, 4096), nn.ReLU(), nn.Linear(4096, 1024))
        answer = memfathom.estimate(model, torch.zeros(8, 1024), gpu="rtx-4090")
        self.assertEqual(answer.verdict.status, "fits")
        parameters = sum(p.numel() * 4 for p in model.parameters())
        self.assertGreater(int(answer.totals.allocated_peak), 4 * parameters)  # with gradients and both states of AdamW
        self.assertEqual(model[0].weight.device.type, "cpu")

    def test_without_an_optimizer_only_the_forward_pass_is_counted(self):
        model = nn.Linear(4096, 4096)
        training, inference = (int(memfathom.estimate(model, torch.zeros(8, 4096), optimizer=o).totals.allocated_peak) for o in (None, False))
        self.assertLess(2 * inference, training)

    def test_a_batch_without_a_module_is_refused(self):
        with self.assertRaisesRegex(memfathom.JobError, "torch.nn.Module"):
            memfathom.estimate({"model": {"preset": "gpt2"}}, torch.zeros(8))


@unittest.skipUnless(PROGRAM, "MEMFATHOM_PROGRAM does not name the program")
class ExplainTest(unittest.TestCase):
    SNAPSHOT = os.path.join(os.path.dirname(HERE), "fuzz", "corpus", "snapshot_fuzz", "failure.pickle")

    def test_the_snapshot_is_one_to_pytorch(self):
        with open(self.SNAPSHOT, "rb") as file:
            data = pickle.load(file)
        self.assertIn("20.0MiB", torch.cuda._memory_viz.segsum(data))
        self.assertIn("raise OutOfMemoryError", torch.cuda._memory_viz.trace(data))
        self.assertIn("Active Memory Timeline", torch.cuda._memory_viz.trace_plot(data))

    def test_the_failure_and_what_held_the_memory_are_told(self):
        done = subprocess.run([PROGRAM, "explain", self.SNAPSHOT, "--format", "json"], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        told = json.loads(done.stdout)
        self.assertEqual(told["failure"], {"requested_bytes": 5 << 20, "device_free_bytes": 1 << 20, "line": "train.py:19"})
        self.assertEqual([(h["name"], h["bytes"] >> 20) for h in told["alive"]["holders"]], [("train.py:17", 8), ("train.py:19", 6)])
        self.assertTrue(any("fragmentation" in sentence for sentence in told["advice"]))

    def test_a_file_that_is_neither_is_refused(self):
        done = subprocess.run([PROGRAM, "explain", __file__], capture_output=True, text=True)
        self.assertEqual(done.returncode, 2)
        self.assertIn("capture_test.py", done.stderr)


@unittest.skipUnless(PROGRAM, "MEMFATHOM_PROGRAM does not name the program")
class CommandTest(unittest.TestCase):
    def run_capture(self, script, *options, arguments=()):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "train.py")
            with open(path, "w") as file:
                file.write(textwrap.dedent(script))
            command = [PROGRAM, "--db", os.path.join(folder, "db"), "capture", "--python", sys.executable, *options, path, *arguments]
            return subprocess.run(command, capture_output=True, text=True, cwd=folder)

    SCRIPT = """
        import sys, torch
        model = torch.nn.Linear(1024, 1024).cuda()
        optimizer = torch.optim.AdamW(model.parameters())
        for i in range(100):
            model(torch.randn(int(sys.argv[-1]), 1024, device="cuda")).sum().backward()
            optimizer.step(); optimizer.zero_grad(); print("step", i)
        """

    def test_a_script_is_estimated_after_its_second_step(self):
        done = self.run_capture(self.SCRIPT, "--gpu", "rtx-4090", "--format", "json", arguments=("--batch_size", "64"))
        self.assertEqual(done.returncode, 0, done.stderr)
        answer = json.loads(done.stdout)
        self.assertEqual(answer["verdict"]["status"], "fits")
        self.assertIn("step 1", done.stderr)
        self.assertNotIn("step 60", done.stderr)  # after its steps it is watched for 40 more at most

    def test_arguments_after_the_script_are_the_scripts(self):
        small, large = (json.loads(self.run_capture(self.SCRIPT, "--gpu", "rtx-4090", "--format", "json", arguments=("--output", "-q", size)).stdout) for size in ("64", "65536"))
        self.assertGreater(large["totals"]["allocated_peak_bytes"], small["totals"]["allocated_peak_bytes"] + 65000 * 4096)

    def test_a_script_that_raises_ends_with_its_own_traceback_and_exit_code_2(self):
        done = self.run_capture("def fail():\n    raise ValueError('no such column')\nfail()\n")
        self.assertEqual(done.returncode, 2)
        self.assertIn("ValueError: no such column", done.stderr)
        self.assertIn("train.py", done.stderr)
        self.assertNotIn("runpy", done.stderr)
        self.assertEqual(done.stdout, "")

    def test_a_snapshot_of_the_step_is_one_to_pytorch(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "step.pickle")
            done = self.run_capture(self.SCRIPT, "--gpu", "rtx-4090", "--snapshot-out", path, "--format", "json", arguments=("64",))
            self.assertEqual(done.returncode, 0, done.stderr)
            with open(path, "rb") as file:
                data = pickle.load(file)
        self.assertIn("Active Memory Timeline", torch.cuda._memory_viz.trace_plot(data))
        self.assertIn("cudaMalloc", torch.cuda._memory_viz.trace(data))
        self.assertIn("total_reserved", torch.cuda._memory_viz.segsum(data))
        live = peak = 0
        for event in data["device_traces"][0]:
            live += {"alloc": event["size"], "free_completed": -event["size"]}.get(event["action"], 0)
            peak = max(peak, live)
        self.assertAlmostEqual(peak, json.loads(done.stdout)["totals"]["allocated_peak_bytes"], delta=9 << 20)  # without cuBLAS' workspace

    def test_a_script_that_ends_by_itself_is_told_so(self):
        done = self.run_capture("raise SystemExit(3)\n")
        self.assertEqual(done.returncode, 2)
        self.assertIn("ended by itself with exit code 3", done.stderr)
        self.assertNotIn("no PyTorch", done.stderr)

    def test_lines_of_the_script_hold_the_peak(self):
        done = self.run_capture(self.SCRIPT, "--gpu", "rtx-4090", "--by", "line", arguments=("64",))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("train.py:3", done.stdout)

    def test_an_unknown_gpu_is_refused_before_the_script_runs(self):
        done = self.run_capture("print('ran')", "--gpu", "rtx-40900")
        self.assertEqual(done.returncode, 2)
        self.assertNotIn("ran", done.stderr.split("memfathom:")[0])

    def test_a_python_without_torch_is_named(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "train.py")
            open(path, "w").close()
            done = subprocess.run([PROGRAM, "capture", "--python", "/nonexistent/python", path], capture_output=True, text=True)
        self.assertEqual(done.returncode, 4)
        self.assertIn("/nonexistent/python", done.stderr)


if __name__ == "__main__":
    unittest.main()

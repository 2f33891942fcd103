"""Tests of what scripts do after the steps that were asked for, and of what they read, send and spell. Needs torch, no GPU."""
import copy
import json
import os
import subprocess
import sys
import tempfile
import textwrap
import unittest

import numpy as np
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset

import memfathom.torch as recorded

HERE = os.path.dirname(os.path.abspath(__file__))


def recorded_lines(work, **options):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "step.jsonl")
        with recorded.recording(path, **options):
            work()
        with open(path) as file:
            return [json.loads(line) for line in file]


def peak(lines):
    sizes, live, most = {}, 0, 0
    for event in lines[1:]:
        if event["op"] == "alloc":
            sizes[event["id"]] = event["bytes"]
            live += event["bytes"]
            most = max(most, live)
        elif event["op"] == "free":
            live -= sizes.pop(event["id"])
    return most


def said(lines):
    return " | ".join(guess["what"] for guess in lines[0]["guesses"])


class Net:
    def __init__(self, width=256):
        self.net = nn.Linear(width, width).cuda()
        self.optimizer = torch.optim.SGD(self.net.parameters(), 0.1)
        self.width = width

    def step(self, batch=8):
        out = self.net(torch.randn(batch, self.width, device="cuda"))
        loss = out.square().mean()
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return out, loss


class LaterTest(unittest.TestCase):
    def test_steps_that_are_all_alike_leave_two_in_the_trace(self):
        def work(steps):
            net = Net()
            for _ in range(steps):
                net.step()

        two, many = recorded_lines(lambda: work(2)), recorded_lines(lambda: work(30))
        self.assertEqual(many[0]["steps"], 2)
        self.assertEqual(peak(two), peak(many))
        self.assertNotIn("changes", said(many))
        self.assertIn("what comes after step", said(many))

    def test_a_copy_that_starts_late_is_in_the_answer(self):
        def work():
            net, copies = Net(), []
            for step in range(8):
                net.step()
                if step == 5:
                    copies.append(torch.empty(1 << 20, device="cuda"))

        lines = recorded_lines(work)
        self.assertGreater(peak(lines), 4 << 20)
        self.assertIn("the memory changes after the first steps: step 7", said(lines))

    def test_kept_graphs_are_named_as_growth(self):
        def work():
            net, losses = Net(), []
            for _ in range(9):
                losses.append(net.step(64)[0])

        lines = recorded_lines(work)
        self.assertIn("grows with every step, by about 64.0 KiB", said(lines))
        self.assertEqual(max(g["bytes"] for g in lines[0]["guesses"]), 10_000 * (64 << 10))

    def test_batches_of_other_sizes_are_named(self):
        def work():
            net = Net()
            for batch in (8, 8, 8, 64, 8):
                x = torch.randn(batch, 256).cuda()
                net.net(x).sum().backward()
                net.optimizer.step()

        lines = recorded_lines(work)
        self.assertIn("differ in size: from 8.0 KiB to 64.0 KiB", said(lines))

    def test_the_validation_after_a_long_epoch_is_in_the_answer(self):
        def work():
            net = Net()
            for _ in range(3):
                for (x,) in DataLoader(TensorDataset(torch.randn(800, 256)), 8):
                    net.optimizer.zero_grad()
                    net.net(x.cuda()).sum().backward()
                    net.optimizer.step()
                kept = []
                with torch.no_grad():
                    for (x,) in DataLoader(TensorDataset(torch.randn(4096, 256)), 512):
                        kept.append(net.net(x.cuda()))

        lines = recorded_lines(work)
        self.assertGreater(peak(lines), 2 * 512 * 256 * 4)
        self.assertIn("a loop over a data loader keeps about 512.0 KiB of each batch on the GPU; 2 batches were recorded, 6 more follow", said(lines))

    def test_nothing_is_written_while_the_script_is_watched(self):
        with tempfile.TemporaryDirectory(dir=HERE) as folder:
            path = os.path.join(folder, "best.txt")

            def work():
                net = Net()
                for step in range(9):
                    net.step()
                    if step == 4:
                        with open(path, "w") as file:
                            file.write("best")

            lines = recorded_lines(work)
            self.assertFalse(os.path.exists(path))
            self.assertIn("what comes after step 5", said(lines))

    def test_a_script_that_catches_everything_ends_too_and_writes_nothing(self):
        with tempfile.TemporaryDirectory(dir=HERE) as folder:
            path = os.path.join(folder, "last.txt")

            def work():
                net = Net()
                try:
                    for self.steps in range(1000):
                        try:
                            net.step()
                            if self.steps == 4:
                                open(path, "w").close()
                        except:  # noqa: E722
                            pass
                finally:
                    open(path, "w").close()

            recorded_lines(work)
            self.assertFalse(os.path.exists(path))

    def test_an_error_after_the_recording_is_told_and_does_not_fail_it(self):
        def work():
            net = Net()
            for step in range(9):
                net.step()
                if step == 4:
                    raise ValueError("no such metric")

        self.assertIn("ended with ValueError: no such metric after 5 steps", said(recorded_lines(work)))

    def test_a_script_without_modules_ends_too(self):
        def work():
            weight = torch.zeros(256, 256, device="cuda", requires_grad=True)
            optimizer = torch.optim.SGD([weight], 0.1)
            for self.steps in range(100000):
                weight.square().sum().backward()
                optimizer.step()

        self.assertEqual(recorded_lines(work)[0]["steps"], 2)
        self.assertLess(self.steps, 1000)


    def test_an_optimizer_of_the_scripts_own_ends_too(self):
        def work():
            net = nn.Linear(256, 256).cuda()
            for self.steps in range(100000):
                net(torch.randn(8, 256, device="cuda")).sum().backward()
                for p in net.parameters():
                    p.data.sub_(0.1 * p.grad)
                    p.grad = None

        lines = recorded_lines(work)
        self.assertIn("no optimizer of torch.optim", said(lines))
        self.assertLess(self.steps, 1000)

    def test_a_loop_that_waits_for_a_small_value_ends(self):
        def work():
            net = Net()
            for _ in range(2):
                error, rounds = net.net(torch.randn(8, 256, device="cuda")).abs().max(), 0
                while error.item() > 1e-3:
                    error, rounds = error * 0.5, rounds + 1
                self.assertEqual(rounds, 100)
                net.step()

        self.assertIn("taken to be so after 100 times", said(recorded_lines(work)))


class SpellingsTest(unittest.TestCase):
    def test_large_results_become_arrays_and_lists_at_once(self):
        def work():
            out = nn.Linear(1024, 1024).cuda()(torch.randn(1024, 1024, device="cuda")).detach()
            with self.assertRaisesRegex(TypeError, "to copy the tensor to host memory first"):
                out.numpy()
            self.assertEqual(out.cpu().numpy().shape, (1024, 1024))
            self.assertEqual(np.asarray(out.cpu()).dtype, np.float32)
            self.assertEqual((len(out.tolist()), out.max().tolist()), (1024, 1.0))

        recorded_lines(work)

    def test_workers_send_large_batches(self):
        def work():
            for (x,) in DataLoader(TensorDataset(torch.randn(256, 4096)), 128, num_workers=1, timeout=60):
                self.assertEqual(x.cuda().shape, (128, 4096))

        recorded_lines(work)

    def test_legacy_tensor_types(self):
        def work():
            self.assertTrue(torch.ones(7).type(torch.cuda.FloatTensor).is_cuda)
            self.assertEqual(torch.cuda.LongTensor([1, 2]).tolist(), [1, 2])
            self.assertIsInstance(torch.cuda.HalfTensor(2, 3), torch.cuda.HalfTensor)
            self.assertEqual(torch.zeros(3).type("torch.cuda.DoubleTensor").dtype, torch.float64)

        recorded_lines(work)

    def test_several_gpus_in_one_process_are_named(self):
        def work():
            torch.cuda.set_device(0)
            first, second = nn.Linear(64, 64).to("cuda:0"), nn.Linear(64, 64).to("cuda:1")
            second(first(torch.randn(8, 64).to("cuda:0")).to("cuda:1")).sum().backward()

        self.assertIn("over cuda:0 and cuda:1", said(recorded_lines(work)))
        one = lambda: nn.Linear(64, 64).to("cuda:1")(torch.randn(8, 64).to("cuda:1")).sum().backward()
        self.assertNotIn("cuda:0", said(recorded_lines(one)))

    def test_lazy_modules_are_made_where_they_were_moved_to(self):
        def work():
            for width in (32, 1 << 20):
                net = nn.Sequential(nn.LazyLinear(64), nn.ReLU()).cuda().half()
                net(torch.randn(8, width, device="cuda").half()).sum().backward()
                self.assertEqual((net[0].weight.device.type, net[0].weight.dtype, net[0].weight.grad.shape), ("cuda", torch.float16, (64, width)))

        recorded_lines(work)

    def test_weights_that_cannot_be_fetched_are_done_without(self):
        def work():
            net = nn.Linear(4, 4)
            net.load_state_dict(torch.hub.load_state_dict_from_url("http://weights.invalid/resnet.pth", model_dir=tempfile.mkdtemp()))

        self.assertIn("the weights resnet.pth are not here", said(recorded_lines(work)))

    def test_a_copied_parameter_has_no_gradient(self):
        def work():
            net = nn.Linear(64, 64).cuda()
            net(torch.randn(8, 64, device="cuda")).sum().backward()
            self.assertIsNone(copy.deepcopy(net).weight.grad)

        recorded_lines(work)

    def test_a_name_on_the_hub_ends_with_a_way_out(self):
        with tempfile.TemporaryDirectory() as folder:
            script = os.path.join(folder, "train.py")
            with open(script, "w") as file:
                file.write(textwrap.dedent("""
                    import urllib.request
                    urllib.request.urlopen("http://weights.invalid/model.bin")
                """))
            command = [sys.executable, "-m", "memfathom._with_torch", "script", "-o", os.path.join(folder, "t.gz"), script]
            done = subprocess.run(command, capture_output=True, text=True)
        self.assertEqual(done.returncode, 2)
        self.assertIn("AutoModel.from_config", done.stderr)


if __name__ == "__main__":
    unittest.main()

"""Tests of recordings at several sizes: where a script has its sizes, how recordings are joined, when they are not. Needs torch."""
import os
import tempfile
import unittest

import torch

import memfathom.torch as recorded
from memfathom.torch import live, script_sizes, vary


def recording_at(batch, length=8, path=None, bias=0):
    """A small training step at a size."""
    with recorded.recording(path, stop=False):
        net = torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.ReLU(), torch.nn.Linear(32, 4)).cuda()
        update = torch.optim.SGD(net.parameters(), 0.1)
        for _ in range(2):
            x = torch.randn(batch + bias, length, 16, device="cuda")
            net(x).sum().backward()
            update.step()
            update.zero_grad()
    return vary.lines_of(path)


class JoinedTest(unittest.TestCase):
    def lines(self, *sizes, **options):
        with tempfile.TemporaryDirectory() as folder:
            return [({"batch_size": b}, recording_at(b, path=os.path.join(folder, f"{b}.jsonl"), **options)) for b in sizes]

    def test_a_joined_recording_has_the_sizes_of_a_fresh_one(self):
        four, eight, twelve, fifty = self.lines(4, 8, 12, 50)
        joined = vary.joined([four, eight], twelve)
        self.assertEqual(vary.peak_of(joined, [50], [(0,), (1,)]), vary.peak_of(fifty[1]))
        self.assertEqual(joined[0]["sizes"], {"batch_size": 4})
        for event, fresh in zip(joined[1:], fifty[1][1:]):
            if "vary" in event:
                self.assertEqual(event["vary"]["/bytes"][0] + 50 * event["vary"]["/bytes"][1], fresh["bytes"])

    def test_a_step_of_another_order_is_not_joined(self):
        four, eight, twelve = self.lines(4, 8, 12)
        del eight[1][-1]
        with self.assertRaisesRegex(vary.NotVariable, "allocations and frees at batch size 8"):
            vary.joined([four, eight], twelve)

    def test_a_check_that_deviates_is_said(self):
        four, eight, twelve = self.lines(4, 8, 12)
        for event in twelve[1]:
            event["bytes"] = 2 * event.get("bytes", 0)
        with self.assertRaisesRegex(vary.NotVariable, "a fresh recording has a peak of"):
            vary.joined([four, eight], twelve)


class PlaceTest(unittest.TestCase):
    def place(self, script, words=(), named="", size="batch_size"):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "train.py")
            with open(path, "w") as file:
                file.write(script)
            return script_sizes.place_of(size, named, path, list(words))

    def test_an_argument_that_is_given(self):
        for words in (["--batch", "8", "--lr", "1"], ["--batch=8"]):
            place = self.place("", words)
            self.assertEqual(place.value, 8)
            self.assertEqual([w for w in place.words(words, 16) if "16" in w], ["16"] if len(words) > 1 else ["--batch=16"])

    def test_the_default_of_an_argument(self):
        place = self.place('p.add_argument("--batch-size", type=int, default=32)')
        self.assertEqual((place.value, place.words(["x"], 64)), (32, ["x", "--batch-size", "64"]))

    def test_a_number_of_the_script(self):
        place = self.place("BATCH_SIZE = 12\n")
        self.assertEqual((place.value, place.assignments(24)), (12, ["batch_size=24"]))
        self.assertEqual(self.place("loader = DataLoader(data, batch_size=6)").value, 6)

    def test_several_numbers_or_none_are_refused_with_the_way_to_say_it(self):
        with self.assertRaisesRegex(vary.NotVariable, "several values in the script"):
            self.place("DataLoader(a, batch_size=6); DataLoader(b, batch_size=60)")
        with self.assertRaisesRegex(vary.NotVariable, "--vary batch_size=--its-argument"):
            self.place("x = 1")

    def test_a_script_runs_with_another_number(self):
        with tempfile.TemporaryDirectory() as folder:
            path, out = os.path.join(folder, "train.py"), os.path.join(folder, "out")
            with open(path, "w") as file:
                file.write(f"BATCH = 3\nopen({out!r}, 'w').write(str(BATCH) + __name__)\n")
            import sys

            main = sys.modules["__main__"]
            try:
                script_sizes.run_with(path, ["BATCH=9"])
            finally:
                sys.modules["__main__"] = main
            with open(out) as file:
                self.assertEqual(file.read(), "9__main__")


class LiveTest(unittest.TestCase):
    def test_a_real_script_is_stopped_before_the_step_after_the_last(self):
        net, seen = torch.nn.Linear(4, 2), 0
        update = torch.optim.SGD(net.parameters(), 0.1)
        with live.Steps(2) as steps, self.assertRaises(live.Enough):
            while True:
                net(torch.ones(3, 4)).sum().backward()
                update.step()
                seen += 1
        self.assertEqual((steps.done, seen), (2, 2))
        net(torch.ones(3, 4))  # nothing is left of it


if __name__ == "__main__":
    unittest.main()

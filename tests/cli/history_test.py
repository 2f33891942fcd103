"""explain --job with snapshots that the program wrote itself and that are altered here: every alteration is found where it was made.

    python3 history_test.py MEMFATHOM
"""
import copy
import json
import os
import pickle
import subprocess
import sys
import tempfile
import unittest

PROGRAM = sys.argv.pop(1)
JOB = {"model": {"input": {"shape": [256]},
                 "layers": [{"type": "repeat", "times": 3, "layers": [{"type": "linear", "in": 256, "out": 512}, {"type": "relu"},
                                                                      {"type": "linear", "in": 512, "out": 256}]}],
                 "loss": "mean"},
       "training": {"batch_size": 32, "optimizer": "adamw"}}


class HistoryTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.job = cls.path("job.json")
        with open(cls.job, "w") as file:
            json.dump(JOB, file)
        cls.run_program("estimate", cls.job, "--snapshot-out", cls.path("own.pickle"), codes=(0,))
        with open(cls.path("own.pickle"), "rb") as file:
            cls.own = pickle.load(file)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    @classmethod
    def path(cls, name):
        return os.path.join(cls.folder.name, name)

    @classmethod
    def run_program(cls, *words, codes):
        run = subprocess.run([PROGRAM, "--db", cls.path("none.db"), *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert run.returncode in codes, run.stderr
        return run.stdout

    def compared(self, snapshot, code):
        with open(self.path("altered.pickle"), "wb") as file:
            pickle.dump(snapshot, file)
        said = self.run_program("explain", self.path("altered.pickle"), "--job", self.job, "--format", "json", codes=(code,))
        return json.loads(said)["replay"]

    def altered(self):
        """A copy, its events, and the position of an allocation in the second iteration that is freed again."""
        snapshot = copy.deepcopy(self.own)
        events = snapshot["device_traces"][0]
        allocations = [i for i, event in enumerate(events) if event["action"] == "alloc"]
        return snapshot, events, allocations

    def test_the_own_history_is_equal(self):
        replay = self.compared(self.own, 0)
        self.assertGreater(replay["recorded_allocations"], 50)
        self.assertEqual(replay["equal_allocations"], replay["recorded_allocations"])
        self.assertEqual(replay["replayed_allocations"], replay["recorded_allocations"])
        self.assertTrue(replay["complete"])
        self.assertEqual(replay["differences"], [])

    def test_a_larger_allocation_is_named_with_both_sizes(self):
        snapshot, events, allocations = self.altered()
        chosen = allocations[20]
        before = events[chosen]["size"]
        events[chosen]["size"] = before + 4096
        events[chosen]["frames"].insert(0, {"name": "at::_ops::addmm::call", "filename": "", "line": 0})
        difference = self.compared(snapshot, 1)["differences"][0]
        self.assertEqual(difference["kind"], "size")
        self.assertEqual((difference["recorded"]["number"], difference["recorded"]["bytes"]), (21, before + 4096))
        self.assertEqual(difference["recorded"]["operation"], "aten.addmm")
        self.assertEqual(difference["replayed"]["bytes"], before)

    def test_an_additional_allocation_is_named_by_operation_and_line(self):
        snapshot, events, allocations = self.altered()
        frames = [{"name": "at::_ops::convolution::call", "filename": "", "line": 0},
                  {"name": "forward", "filename": "/home/me/train.py", "line": 17}]
        extra = [{"action": action, "addr": 1 << 50, "size": 7 << 20, "stream": 0, "frames": frames}
                 for action in ("alloc", "free_requested", "free_completed")]
        events[allocations[25]:allocations[25]] = extra
        replay = self.compared(snapshot, 1)
        self.assertEqual(len(replay["differences"]), 1)
        difference = replay["differences"][0]
        self.assertEqual(difference["kind"], "only_recorded")
        self.assertEqual((difference["recorded"]["operation"], difference["recorded"]["line"]), ("aten.convolution", "train.py:17"))
        self.assertEqual(difference["recorded"]["number"], 26)
        self.assertEqual(replay["equal_allocations"], replay["replayed_allocations"])

    def test_a_missing_allocation_is_named_by_its_module(self):
        snapshot, events, allocations = self.altered()
        address, chosen = events[allocations[30]]["addr"], allocations[30]
        last = next((i for i in range(chosen, len(events))
                     if events[i]["action"] == "free_completed" and events[i]["addr"] == address), len(events))
        events[:] = [event for i, event in enumerate(events)
                     if not (chosen <= i <= last and event["addr"] == address and not event["action"].startswith("segment"))]
        difference = self.compared(snapshot, 1)["differences"][0]
        self.assertEqual(difference["kind"], "only_replayed")
        self.assertIsNotNone(difference["replayed"]["component"])
        self.assertNotEqual(difference["replayed"]["component"], "")

    def test_a_later_free_is_found(self):
        snapshot, events, allocations = self.altered()
        for chosen in allocations[20:]:
            address = events[chosen]["addr"]
            freed = next((i for i in range(chosen, len(events)) if events[i]["action"] == "free_completed"
                          and events[i]["addr"] == address), None)
            later = [i for i in allocations if freed is not None and i > freed]
            # Its address must not be used again before the new place.
            if len(later) > 3 and all(events[i]["addr"] != address for i in later[:3]):
                break
        event = events.pop(freed)
        events.insert(later[2], event)  # after two more allocations
        differences = self.compared(snapshot, 1)["differences"]
        self.assertEqual([one["kind"] for one in differences], ["freed_later"])
        self.assertEqual(differences[0]["recorded"]["bytes"], events[chosen]["size"])

    def test_text_names_the_first_difference(self):
        snapshot, events, allocations = self.altered()
        events[allocations[20]]["size"] += 4096
        with open(self.path("altered.pickle"), "wb") as file:
            pickle.dump(snapshot, file)
        said = self.run_program("explain", self.path("altered.pickle"), "--job", self.job, codes=(1,))
        self.assertIn("first difference: recorded allocation 21:", said)


unittest.main()

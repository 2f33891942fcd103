"""What happens around a run, with a meter in place of a GPU's counters."""

import json
import subprocess
import sys
import tempfile
import unittest
import warnings
from pathlib import Path

import memfathom
from memfathom import Bytes, DoesNotFitError, MemoryWarning, Observation, Watcher, watch

FITTING = {"model": "gpt2", "sequence_length": 64, "gpu": "rtx-4090"}
HOPELESS = {"model": "llama-2-7b", "sequence_length": 64, "gpu": "rtx-4090"}


class FixedMeter:
    """Invented figures, which go to a temporary database only."""

    def reset(self):
        pass

    def read(self):
        return Observation({"allocated": Bytes(2 * 2**30)}, "rtx-4090", "2.9.0")


class WatchTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.db = Path(folder.name, "memfathom.db")

    def stored(self):
        printed = subprocess.run(
            [sys.executable, "-m", "memfathom", "--db", str(self.db), "--format", "json", "db", "info"],
            check=True,
            capture_output=True,
            text=True,
        )
        return json.loads(printed.stdout)["rows"]["observations"]

    def test_the_observed_peak_is_compared_and_kept(self):
        with watch(db=self.db, meter=FixedMeter(), **FITTING) as run:
            run.step()
        self.assertRegex(run.comparison(), r"allocated 2.00 GiB observed, \d\.\d\d GiB estimated \([+-]\d+\.\d%\)")
        self.assertEqual(self.stored(), 1)
        with watch(db=self.db, meter=FixedMeter(), **FITTING):
            pass
        self.assertEqual(self.stored(), 1)  # the same observation is kept once

    def test_a_run_that_failed_keeps_nothing(self):
        with self.assertRaises(ZeroDivisionError):
            with watch(db=self.db, meter=FixedMeter(), **FITTING):
                raise ZeroDivisionError
        self.assertFalse(self.db.exists())

    def test_a_job_of_foreign_files_is_kept_as_the_job_it_means(self):
        arguments = {"output_dir": "out", "per_device_train_batch_size": 2}
        with watch([arguments], db=self.db, meter=FixedMeter(), **FITTING):
            pass
        self.assertEqual(self.stored(), 1)

    def test_without_a_gpu_nothing_is_observed(self):
        with watch(db=self.db, **FITTING) as run:
            run.step()
        self.assertIsNone(run.observation)
        self.assertEqual(run.comparison(), "")
        self.assertFalse(self.db.exists())

    def test_a_hopeless_job_warns_stops_or_is_ignored(self):
        with self.assertWarnsRegex(MemoryWarning, "does not fit.*Advice: full training -> LoRA"):
            Watcher().begin(None, HOPELESS)
        with self.assertRaisesRegex(
            DoesNotFitError, "needs 12.*GiB, and .*GiB are available on rtx-4090. Advice: full training -> LoRA"
        ):
            Watcher(on_misfit="stop").begin(None, HOPELESS)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            Watcher(on_misfit="ignore").begin(None, HOPELESS)
        with self.assertRaisesRegex(ValueError, '"halt"; it must be'):
            Watcher(on_misfit="halt")

    def test_an_observation_that_cannot_be_kept_is_an_error(self):
        with self.assertRaisesRegex(memfathom.DeviceError, "not kept"):
            with watch(
                db="/proc/nonexistent/memfathom.db", session=memfathom.Session(db=None), meter=FixedMeter(), **FITTING
            ):
                pass


if __name__ == "__main__":
    unittest.main()

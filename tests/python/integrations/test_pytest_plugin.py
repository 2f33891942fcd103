"""The pytest plugin, run by pytest."""

import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

TESTS = """
import pytest

@pytest.mark.gpu_memory(limit="24 GiB", gpu="rtx-4090")
def test_fits(gpu_memory):
    assert gpu_memory.estimate(model="gpt2", sequence_length=256).fits

@pytest.mark.gpu_memory(limit="2 GiB")
def test_is_above_its_limit(gpu_memory):
    gpu_memory.estimate(model="gpt2", sequence_length=256)

@pytest.mark.gpu_memory(gpu="rtx-4090")
def test_does_not_fit(gpu_memory):
    gpu_memory.estimate(model="llama-2-7b", sequence_length=256)

@pytest.mark.gpu_memory(limt="2 GiB")
def test_has_a_misspelled_mark(gpu_memory):
    pass

@pytest.mark.gpu_memory(limit="2 GiB")
def test_observed_is_above_the_limit(gpu_memory, monkeypatch):
    from memfathom import Bytes, Observation
    monkeypatch.setattr(gpu_memory._meter, "read", lambda: Observation({"reserved": Bytes(3 * 2**30)}))
    gpu_memory.check_observed()

@pytest.mark.gpu_memory(limit="2 GiB")
def test_needs_no_fixture():
    pass
"""


class PluginTest(unittest.TestCase):
    def test_asserts_estimates_and_observed_peaks(self):
        with tempfile.TemporaryDirectory() as folder:
            Path(folder, "test_memory.py").write_text(TESTS)
            # An installed package has an entry point for the plugin; the clone's has none.
            plugin = [] if os.environ.get("MEMFATHOM_INSTALLED") else ["-p", "memfathom.pytest_plugin"]
            command = [
                sys.executable,
                "-m",
                "pytest",
                "-q",
                "--strict-markers",
                "-p",
                "no:cacheprovider",
                "-rfE",
                *plugin,
                folder,
            ]
            environment = {**os.environ, "COLUMNS": "400"}  # pytest cuts its summary at the terminal's width
            said = subprocess.run(command, capture_output=True, text=True, cwd=folder, env=environment).stdout
        for line in (
            "3 failed, 2 passed, 1 error",
            "test_is_above_its_limit - Failed: the job needs",
            "test_does_not_fit - Failed: the job does not fit on rtx-4090",
            "test_observed_is_above_the_limit - Failed: 3.00 GiB were reserved",
            "takes limit= and gpu=",
        ):
            self.assertIn(line, said)


if __name__ == "__main__":
    unittest.main()

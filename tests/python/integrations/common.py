"""What the tests of the integrations share: a tiny model, and a meter in place of a GPU's counters."""

import contextlib
import json
import subprocess
import sys
import tempfile
from pathlib import Path

from memfathom import Bytes, Observation

# Far more than any GPU has, whatever the machine.
HOPELESS = {"gpu": "rtx-4090", "batch_size": 2**22, "sequence_length": 32}


class CountingMeter:
    """Stands in for torch's counters, which need a GPU: the figures below are invented and go to a temporary database only."""

    def __init__(self):
        self.resets = 0
        self.reads = 0

    def reset(self):
        self.resets += 1

    def read(self):
        self.reads += 1
        return Observation({"allocated": Bytes(3 * 2**20), "reserved": Bytes(22 * 2**20)}, "rtx-4090", "2.0")


@contextlib.contextmanager
def database():
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder, "memfathom.db")


def observations(db):
    """The observations in the database, as the program exports them."""
    printed = subprocess.run(
        [sys.executable, "-m", "memfathom", "--db", str(db), "--format", "json", "db", "info"],
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    return json.loads(printed)["rows"]["observations"]


def tiny_config():
    from transformers import GPT2Config

    return GPT2Config(n_embd=16, n_layer=2, n_head=2, vocab_size=64, n_positions=32, bos_token_id=0, eos_token_id=1)


def tiny_model():
    import torch
    from transformers import GPT2LMHeadModel

    torch.manual_seed(0)
    return GPT2LMHeadModel(tiny_config())


def samples(count=4, length=16):
    return [
        {"input_ids": [1 + (index + at) % 60 for at in range(length)], "labels": [1] * length} for index in range(count)
    ]

"""Jobs from objects of other libraries, without these libraries: only their shape matters."""

import enum
import json
import re
import unittest
from pathlib import Path

from memfathom import JobError, Session
from memfathom._jobs import _SECTIONS, request

CONTRACT = Path(__file__).resolve().parents[2] / "docs" / "contract.md"


class PeftType(str, enum.Enum):
    LORA = "LORA"


class LoraConfig:
    def to_dict(self):
        return {"peft_type": PeftType.LORA, "r": 16, "target_modules": {"c_attn"}, "lora_dropout": 0.0}


class GPT2Config:
    def to_dict(self):
        return {
            "model_type": "gpt2",
            "n_embd": 768,
            "n_layer": 12,
            "n_head": 12,
            "vocab_size": 50257,
            "n_positions": 1024,
        }


class TrainingArguments:
    def to_dict(self):
        return {"output_dir": "out", "per_device_train_batch_size": 4, "bf16": True, "gradient_checkpointing": True}


class GPT2LMHeadModel:
    config = GPT2Config()


DEEPSPEED = {"zero_optimization": {"stage": 2}, "train_micro_batch_size_per_gpu": 4, "bf16": {"enabled": True}}


class ObjectsTest(unittest.TestCase):
    def setUp(self):
        self.session = Session(db=None, live_gpus=False)
        self.addCleanup(self.session.close)

    def test_a_config_is_read_as_its_file(self):
        keys = {"sequence_length": 128, "gpu": "rtx-4090"}
        by_name = self.session.estimate(model="gpt2", **keys)
        for job in (GPT2Config(), GPT2LMHeadModel()):
            self.assertEqual(self.session.estimate(job, **keys).totals, by_name.totals)
            self.assertEqual(self.session.estimate(model=job, **keys).totals, by_name.totals)

    def test_a_trainers_objects_make_one_job(self):
        estimate = self.session.estimate(
            [GPT2Config(), TrainingArguments(), LoraConfig()], sequence_length=128, gpu="rtx-4090"
        )
        self.assertIn("batch 4", estimate.job)
        self.assertIn("LoRA", estimate.job)
        self.assertLess(estimate.trainable_parameters, estimate.parameters)

    def test_a_deepspeed_dict_is_read(self):
        estimate = self.session.estimate(["model: {preset: gpt2}", DEEPSPEED], sequence_length=128, num_gpus=4)
        self.assertIn("ZeRO", estimate.job)

    def test_unread_keys_are_named(self):
        arguments = {**TrainingArguments().to_dict(), "gradient_checkpoint": True}
        estimate = self.session.estimate([GPT2Config(), arguments], sequence_length=128, gpu="rtx-4090")
        self.assertEqual([one.key for one in estimate.unread], ["gradient_checkpoint"])
        self.assertIsNone(estimate.fits)

    def test_a_document_of_no_known_kind_is_refused(self):
        with self.assertRaises(JobError):
            self.session.estimate({"colour": "red"})


class RequestTest(unittest.TestCase):
    def test_short_keys_get_their_section(self):
        sent = json.loads(
            request(None, {"model": "gpt2", "batch_size": 2, "gpu": "rtx-4090", "zero_stage": None}, {"explain": None})
        )
        self.assertEqual(
            sent, {"job": {}, "set": {"model.preset": "gpt2", "training.batch_size": 2, "target.gpu": "rtx-4090"}}
        )

    def test_the_keys_are_those_of_the_contract(self):
        text = CONTRACT.read_text()
        for section in ("training", "parallel"):
            table = text[text.index(f"**`{section}`**") :]
            table = table[: table.index("\n\n**")]
            rows = [line.split("|")[1] for line in table.splitlines() if line.startswith("| `")]
            known = {key for row in rows for key in re.findall(r"`(\w+)`", re.sub(r"\([^)]*\)", "", row))}
            self.assertEqual(set(_SECTIONS[section]), known, section)


if __name__ == "__main__":
    unittest.main()

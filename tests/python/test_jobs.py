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


class Number:
    """A number of numpy or torch: no int, no float."""

    def __init__(self, value):
        self.value = value

    def __float__(self):
        return float(self.value)


class Index(Number):
    def __index__(self):
        return int(self.value)


class MistakesTest(unittest.TestCase):
    """What Python lets people write and a job cannot be: one sentence each, and no figure."""

    def refused(self, sentence, *job, **keys):
        with self.assertRaisesRegex(JobError, sentence):
            request(job[0] if job else None, keys, {})

    def test_no_number(self):
        for value in (float("inf"), float("nan")):
            self.refused("infinite or not a number", model="gpt2", batch_size=value)
            self.refused(
                "the job's training has a number", {"model": {"preset": "gpt2"}, "training": {"batch_size": value}}
            )

    def test_what_contains_itself(self):
        job, files = {}, []
        job["model"] = job
        files.append(files)
        self.refused("contains itself", job)
        self.refused("contains itself", files)

    def test_what_json_has_not(self):
        self.refused("keys must be str", {("a", "b"): 1})

    def test_no_path(self):
        self.refused("empty text", "")
        self.refused("zero byte", "a\0b")

    def test_one_job_where_several_are_wanted(self):
        for jobs in ("model: {preset: gpt2}", {"model": {"preset": "gpt2"}}, Path("job.yaml")):
            with self.assertRaisesRegex(JobError, "put it into a list"):
                Session(db=None).estimate_many(jobs)
        with self.assertRaisesRegex(ValueError, "workers is -1"):
            Session(db=None).estimate_many([], workers=-1)
        with self.assertRaisesRegex(ValueError, 'errors is "ignore"'):
            Session(db=None).estimate_many([], errors="ignore")


class RequestTest(unittest.TestCase):
    def test_numbers_of_numpy_are_numbers(self):
        sent = json.loads(request({"training": {"batch_size": Index(4)}}, {"batch_size": Index(8), "label_smoothing": Number(0.5)}, {}))
        self.assertEqual(sent["set"], {"training.batch_size": 8, "training.label_smoothing": 0.5})
        self.assertEqual(json.loads(sent["files"][0]["text"]), {"training": {"batch_size": 4}})

    def test_a_gpu_and_a_model_of_the_lists_may_be_given_as_they_are(self):
        session = Session(db=None, live_gpus=False)
        gpu = next(one for one in session.gpus() if one.name == "rtx-4090")
        model = next(one for one in session.models() if one.name == "gpt2")
        self.assertTrue(session.fits(model=model, gpu=gpu, sequence_length=64))

    def test_files_may_come_from_a_generator(self):
        files = json.loads(request((one for one in ("a.yaml", Path("b.json"))), {}, {}))["files"]
        self.assertEqual(files, ["a.yaml", "b.json"])

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

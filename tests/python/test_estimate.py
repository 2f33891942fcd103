"""The Python API against the library of this build."""

import dataclasses
import json
import os
import pickle
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import memfathom
from memfathom import Bytes, JobError, Session, UndecidedError

JOB = {
    "model": {"preset": "gpt2"},
    "training": {"sequence_length": 256, "batch_size": 2},
    "target": {"gpu": "rtx-4090"},
}
YAML = "model: {preset: gpt2}\ntraining: {sequence_length: 256, batch_size: 2}\ntarget: {gpu: rtx-4090}\n"
PROGRAM = os.environ["MEMFATHOM_PROGRAM"]


class EstimateTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.session = Session(db=None, live_gpus=False)
        cls.addClassCleanup(cls.session.close)

    def test_every_form_of_a_job_gives_the_same_answer(self):
        @dataclasses.dataclass
        class Mine:
            model: dict
            training: dict
            target: dict
            allocator: object = None

        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "job.yaml")
            path.write_text(YAML)
            jobs = [JOB, YAML, json.dumps(JOB), path, str(path), Mine(**JOB), [{"model": JOB["model"]}, path]]
            answers = {self.session.estimate(job).to_json() for job in jobs}
        answers.add(self.session.estimate(model="gpt2", sequence_length=256, batch_size=2, gpu="rtx-4090").to_json())
        answers.add(self.session.estimate(JOB, **{"training.batch_size": 2}).to_json())
        self.assertEqual(len(answers), 1)

    def test_the_answer_is_byte_for_byte_the_programs(self):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "job.yaml")
            path.write_text(YAML)
            printed = subprocess.run(
                [PROGRAM, "--format", "json", "estimate", path], check=True, capture_output=True, text=True
            ).stdout
            self.assertEqual(memfathom.estimate(path).to_json(), printed.rstrip("\n"))

    def test_python_dash_m_is_the_program(self):
        printed = subprocess.run(
            [sys.executable, "-m", "memfathom", "--version"], check=True, capture_output=True, text=True
        ).stdout
        self.assertEqual(printed, f"memfathom {memfathom.__version__}\n")

    def test_fields_are_those_of_the_json(self):
        estimate = self.session.estimate(JOB, explain=True)
        answer = estimate.to_dict()
        self.assertEqual(estimate.totals.device_peak, answer["totals"]["device_peak_bytes"])
        self.assertEqual(sum(one.bytes for one in estimate.components), estimate.device_peak)
        self.assertEqual([one.name for one in estimate.phases], [one["name"] for one in answer["phases"]])
        self.assertEqual(estimate.parameters, 124439808)
        self.assertEqual(estimate.verdict.gpu, "rtx-4090")
        self.assertTrue(estimate.explanation[0].text)
        self.assertIsInstance(estimate.device_peak, Bytes)
        with self.assertRaises(dataclasses.FrozenInstanceError):
            estimate.job = "another"

    def test_an_estimate_survives_pickling_but_for_its_charts(self):
        estimate = self.session.estimate(JOB)
        restored = pickle.loads(pickle.dumps(estimate))
        self.assertEqual(restored, estimate)
        with self.assertRaisesRegex(RuntimeError, "estimate the job again"):
            _ = restored.charts

    def test_a_mistake_is_a_job_error_with_the_programs_sentence(self):
        with self.assertRaises(JobError) as raised:
            self.session.estimate({"model": {"preset": "gpt2"}, "training": {"batch_sise": 2}})
        self.assertIn("batch_size", str(raised.exception))
        with self.assertRaisesRegex(JobError, "did you mean batch_size"):
            self.session.estimate(model="gpt2", batch_sise=2)
        with self.assertRaisesRegex(JobError, "/nonexistent.yaml"):
            self.session.estimate("/nonexistent.yaml")
        with self.assertRaisesRegex(JobError, "cannot be a int"):
            self.session.estimate(3)
        with self.assertRaises(ValueError):
            self.session.estimate({"model": {"preset": "lama"}})

    def test_fits_is_yes_or_no_or_an_error(self):
        self.assertTrue(self.session.fits(JOB))
        self.assertFalse(self.session.fits(model="gpt2", sequence_length=256, memory="3GiB"))
        with self.assertRaisesRegex(UndecidedError, "name one"):
            self.session.fits(model="gpt2", sequence_length=64)
        with self.assertRaisesRegex(UndecidedError, "not read"):
            self.session.fits(
                [
                    {"model": {"preset": "gpt2"}},
                    {"output_dir": "o", "per_device_train_batch_size": 1, "gradient_checkpoint": True},
                ],
                gpu="rtx-4090",
            )

    def test_many_jobs_are_answered_in_order(self):
        jobs = [{**JOB, "id": str(number), "training": {"sequence_length": 32 + number}} for number in range(20)]
        self.assertEqual(
            [one.id for one in self.session.estimate_many(iter(jobs), workers=4)], [job["id"] for job in jobs]
        )
        jobs[3] = {"model": {"preset": "lama"}}
        answers = list(self.session.estimate_many(jobs, errors="return"))
        self.assertIsInstance(answers[3], JobError)
        self.assertEqual(answers[4].id, "4")
        with self.assertRaises(JobError):
            list(self.session.estimate_many(jobs))

    def test_many_jobs_are_taken_as_they_are_needed(self):
        taken = []

        def endless():
            while True:
                taken.append(1)
                yield JOB

        answers = self.session.estimate_many(endless(), workers=2)
        next(answers)
        answers.close()
        self.assertLess(len(taken), 10)

    def test_recommend_compare_gpus_and_models(self):
        advice = self.session.recommend(model="llama-2-7b", sequence_length=128, gpu="rtx-4090")
        self.assertIs(advice.fits, False)
        self.assertTrue(any(one.fits for one in advice.suggestions))
        self.assertTrue(advice.configurations[0].yaml)
        table = self.session.compare(JOB, strategies=["bf16"], targets=["a100-80gb"])
        self.assertEqual([one.name for one in table.strategies], ["baseline", "bf16"])
        self.assertIn("a100-80gb", {one.name for one in self.session.gpus()})
        fitting = {one.name: one for one in self.session.gpus(model="llama-2-7b", sequence_length=128)}
        self.assertNotIn("rtx-4090", fitting)
        self.assertLessEqual({one.verdict for one in fitting.values()}, {"fits", "tight"})
        self.assertTrue(fitting)
        self.assertIn("llama-2-7b", {one.name for one in self.session.models()})

    def test_a_closed_session_says_so(self):
        session = Session(db=None)
        session.close()
        session.close()
        with self.assertRaisesRegex(ValueError, "closed"):
            session.models()


class NotebookTest(unittest.TestCase):
    def test_html_needs_nothing_else(self):
        with Session(db=None, live_gpus=False) as session:
            html = session.estimate({**JOB, "id": "<b>"})._repr_html_()
        self.assertEqual(html.count("<svg"), 2)
        self.assertIn("90 % interval", html)
        self.assertRegex(html, r'style="background:#[0-9a-f]{6}"></span>parameters: 475.46 MiB')
        self.assertIn("available", html)
        for outside in ("http:", "https:", "<script", "<link", "src="):
            self.assertNotIn(outside, html)

    def test_names_are_escaped(self):
        with Session(db=None, live_gpus=False) as session:
            estimate = session.estimate(JOB)
            html = dataclasses.replace(estimate, job="<img>", warnings=("<script>",))._repr_html_()
        self.assertNotIn("<img>", html)
        self.assertNotIn("<script>", html)


class BytesTest(unittest.TestCase):
    def test_prints_with_its_unit_and_counts_as_an_int(self):
        self.assertEqual(str(Bytes(512)), "512 B")
        self.assertEqual(str(Bytes(24 * 2**30)), "24.00 GiB")
        self.assertEqual(str(Bytes(2**41)), "2048.00 GiB")
        self.assertEqual(f"{Bytes(1024):>10}", "  1.00 KiB")
        self.assertEqual(f"{Bytes(1024):d}", "1024")
        self.assertIsInstance(Bytes(1) + 1, Bytes)
        self.assertEqual(json.dumps(Bytes(7)), "7")

    def test_a_size_without_a_unit_is_refused(self):
        self.assertEqual(Bytes.parse("1.5 KiB"), 1536)
        for text in ("24", "24 GB!", "GiB", ""):
            with self.assertRaises(ValueError):
                Bytes.parse(text)


class ImportTest(unittest.TestCase):
    def test_importing_loads_no_library_of_others(self):
        code = "import sys, memfathom; print([m for m in ('torch', 'numpy', 'pandas', 'transformers', 'asyncio') if m in sys.modules])"
        self.assertEqual(
            subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout, "[]\n"
        )

    def test_a_missing_library_is_a_sentence(self):
        code = "import memfathom\ntry: memfathom.models()\nexcept memfathom.DeviceError as e: print(e)"
        environment = {**os.environ, "MEMFATHOM_LIBRARY": "/nonexistent.so"}
        said = subprocess.run(
            [sys.executable, "-c", code], check=True, capture_output=True, text=True, env=environment
        ).stdout
        self.assertIn("MEMFATHOM_LIBRARY", said)


if __name__ == "__main__":
    unittest.main()

"""The pre-commit hook and the comment on a pull request."""

import contextlib
import io
import os
import subprocess
import tempfile
import unittest
from pathlib import Path

from memfathom import pre_commit, pull_request

JOB = "model: {{preset: gpt2}}\ntraining: {{batch_size: {}, sequence_length: 512}}\n"


def run(main, *arguments):
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        code = main(list(arguments))
    return code, said.getvalue()


class InAFolder(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(folder.name)


class PreCommitTest(InAFolder):
    def test_fails_for_a_job_that_does_not_fit(self):
        Path("small.yaml").write_text(JOB.format(1))
        Path("large.yaml").write_text(JOB.format(512))
        self.assertEqual(run(pre_commit.main, "--gpu", "rtx-4090", "small.yaml"), (0, ""))
        code, said = run(pre_commit.main, "--gpu", "rtx-4090", "small.yaml", "large.yaml")
        self.assertEqual(code, 1)
        self.assertIn("large.yaml: gpt2", said)
        self.assertIn("advice:", said)

    def test_without_a_gpu_only_strict_fails(self):
        Path("small.yaml").write_text(JOB.format(1))
        self.assertEqual(run(pre_commit.main, "small.yaml")[0], 0)
        self.assertEqual(run(pre_commit.main, "--strict", "small.yaml")[0], 1)

    def test_a_file_that_is_no_job_is_named(self):
        Path("colours.yaml").write_text("colour: red\n")
        code, said = run(pre_commit.main, "colours.yaml")
        self.assertEqual(code, 2)
        self.assertIn("colours.yaml", said)


class PullRequestTest(InAFolder):
    def setUp(self):
        super().setUp()
        self.git("init", "-q")
        Path("configs").mkdir()
        Path("configs/a.yaml").write_text(JOB.format(1))
        Path("configs/gone.yaml").write_text(JOB.format(1))
        self.git("add", ".")
        self.git("-c", "user.name=n", "-c", "user.email=e", "commit", "-q", "-m", "base")

    def git(self, *words):
        subprocess.run(["git", *words], check=True)

    def test_shows_each_file_before_and_after(self):
        Path("configs/a.yaml").write_text(JOB.format(2))
        Path("configs/gone.yaml").unlink()
        Path("configs/new.yaml").write_text("model: {preset: lama}\n")
        code, said = run(
            pull_request.main,
            "--base",
            "HEAD",
            "--gpu",
            "rtx-4090",
            "configs/a.yaml",
            "configs/gone.yaml",
            "configs/new.yaml",
        )
        self.assertEqual(code, 0)
        self.assertRegex(
            said,
            r"\| `configs/a.yaml` \| \d\.\d\d GiB \(fits\) \| \d\.\d\d GiB \(fits\) \| \+[\d.]+ [MG]iB \(\+\d+\.\d%\) \|",
        )
        self.assertRegex(said, r"\| `configs/gone.yaml` \| \d\.\d\d GiB \(fits\) \| - \|  \|")
        self.assertRegex(said, r"\| `configs/new.yaml` \| - \| not estimated: .*lama")

    def test_a_job_that_stops_fitting_fails_with_advice(self):
        Path("configs/a.yaml").write_text(JOB.format(512))
        code, said = run(pull_request.main, "--base", "HEAD", "--gpu", "rtx-4090", "configs/a.yaml")
        self.assertEqual(code, 1)
        self.assertIn("does not fit", said)
        self.assertIn("**Advice**", said)

    def test_an_unchanged_job_changes_nothing(self):
        code, said = run(pull_request.main, "--base", "HEAD", "--gpu", "rtx-4090", "configs/a.yaml")
        self.assertEqual(code, 0)
        self.assertIn("| none |", said)


if __name__ == "__main__":
    unittest.main()

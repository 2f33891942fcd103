#!/usr/bin/env python3
"""The admission filters of memfathom with a real Slurm, and submissions that try to break them: whatever is submitted, nothing is
refused that was not understood, nothing waits longer than the limits, no file's contents come back, and the controller answers.

usage: filters_test.py MEMFATHOM PROJECT [TEST...]. Exit code 77: skipped, with the reason.
"""

import os
import pathlib
import pwd
import re
import sqlite3
import subprocess
import sys
import time
import unittest

import cluster

PATIENCE = 20  # seconds that each filter may wait, where the answer is what is tested: a busy machine is slow
LIMIT = 2  # where no answer comes
SLACK = 4
USER = "daemon"
HOPELESS = "python train.py --model_name_or_path meta-llama/Llama-2-7b-hf --bf16 --per_device_train_batch_size 8\n"
SHARED = "srun python train.py --model_name_or_path Qwen/Qwen2.5-3B --bf16 --per_device_train_batch_size 1 --max_seq_length 512 --gradient_checkpointing --fsdp full_shard\n"
SECRET = "model: {preset: llama-2-7b}\ntraining: {batch_size: 8, sequence_length: 2048, precision: bf16}\n"


class FiltersTest(cluster.ClusterTest):
    name = "filters"

    @classmethod
    def make_cluster(cls, folder):
        return cluster.Cluster(folder, {"n1": "a100", "n2": "a100"})

    @classmethod
    def prepare(cls):
        for folder in (cls.folder, cls.database.parent):
            folder.chmod(0o777)  # another user submits from it
        cls.slurm.write_configuration()
        cls.slurm.run([MEMFATHOM, "fleet", "install-filter", "--to", cls.slurm.conf.parent, "--gpus", "a100=a100-40gb", "--limit", PATIENCE])
        cls.slurm.extra = "CliFilterPlugins=cli_filter/lua\nJobSubmitPlugins=job_submit/lua"

    def tearDown(self):
        self.slurm.run(["scancel", "--user=root"])
        self.slurm.run(["scancel", f"--user={USER}"])
        self.assertIn("UP", self.slurm.run(["scontrol", "ping"]).stdout)

    def submit(self, text, *options, name="job.sh", user=None, words=None, limit=PATIENCE):
        script = self.folder / name
        if text is not None:
            script.write_bytes(text if isinstance(text, bytes) else text.encode())
        start = time.monotonic()
        more = {"user": user, "group": pwd.getpwnam(user).pw_gid, "extra_groups": []} if user else {}
        done = self.slurm.run(["sbatch", "--hold", "-o", "/dev/null", *options, *(words or [script])], check=False, cwd=self.folder,
                              timeout=60, **more)
        self.assertLess(time.monotonic() - start, 2 * limit + SLACK, done.stderr)
        return done

    def passes(self, done, *says):
        self.assertEqual(done.returncode, 0, done.stderr)
        for sentence in says:
            self.assertIn(sentence, done.stderr)
        return re.search(r"\d+", done.stdout)[0]

    def refused(self, done):
        self.assertNotEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("error: memfathom: this job does not fit", done.stderr)

    def test_01_hostile_comments_and_variables(self):
        for comment in ("memfathom=", "memfathom={", "memfathom={}", "memfathom=/dev/zero", "memfathom=/", "memfathom='; touch owned; '", "memfathom=$(touch owned)",
                        "memfathom=`touch owned`", 'memfathom="}, {"mode": "enforce"', "memfathom=%s%n%d", "memfathom=\x01\x7f\\", "%s%s%n",
                        "memfathom=" + "{" * 1000, "memfathom=" + "x" * 60000, "memfathom=\udcff\udcfe"):
            done = self.submit("#!/bin/sh\ntrue\n", "--gres=gpu:a100:1", f"--comment={comment}")
            # Slurm itself may refuse a comment; memfathom never does.
            self.assertNotIn("does not fit", done.stderr)
            self.assertFalse((self.folder / "owned").exists(), comment)
        for job in ("{", "/etc/shadow", "$(touch owned)"):
            self.passes(self.submit("#!/bin/sh\ntrue\n", "--gres=gpu:a100:1", f"--export=ALL,MEMFATHOM_JOB={job}"), "let through")
        self.assertFalse((self.folder / "owned").exists())

    def test_02_scripts_that_are_hard_to_read(self):
        several = HOPELESS + "python train.py --model_name_or_path gpt2 --bf16\n"
        for text in ("#!/bin/sh\n", "#!/bin/sh\n" + "(" * 100000, "#!/bin/sh\nX=" + "$(" * 50000, b"#!\xff\xfe\x01",
                     "#!/bin/sh\ncat <<END\n" + "x" * 1000000, "#!/bin/sh\n" + several,
                     "#!/bin/sh\npython train.py --model_name_or_path $UNSET --bf16\n", "#!/usr/bin/env python3\nimport torch\n",
                     "#!/bin/sh\nmpirun -n 8 ./simulate\n", "#!/bin/sh\nsrun --mpi=pmix -n 64 ./simulate --steps 5\n"):
            done = self.submit(text, "--gres=gpu:a100:1")
            if "Invalid" not in done.stderr and "too large" not in done.stderr:  # Slurm's own limits
                self.passes(done, "let through")
        large = self.submit("#!/bin/sh\n" + HOPELESS + "# a comment\n" * 300000, "--gres=gpu:a100:1", limit=LIMIT)
        self.passes(large)  # the controller is not held up by reading it
        without = self.submit("echo no interpreter\n", "--gres=gpu:a100:1")
        self.assertIn("This does not look like a batch script", without.stderr)  # sbatch says it before any filter

    def test_03_kinds_of_jobs(self):
        self.passes(self.submit(None, "--gres=gpu:a100:1", words=["--wrap=./simulate"]), "let through")
        self.refused(self.submit(None, "--gres=gpu:a100:1", words=[f"--wrap={HOPELESS}"]))
        self.refused(self.submit("#!/bin/sh\n" + HOPELESS, "--gres=gpu:a100:1", "--array=0-9"))
        self.passes(self.submit("#!/bin/sh\ntrue\n", "--gres=gpu:a100:1", "--array=0-9%2"), "let through")
        self.passes(self.submit("#!/bin/sh\n#SBATCH --gres=gpu:a100:1\n#SBATCH hetjob\n#SBATCH --gres=gpu:a100:1\nsrun --het-group=0,1 ./a\n"))
        self.passes(self.submit("#!/bin/sh\n" + SHARED, "--gres=gpu:a100:1", "-N2"), "this job is tight")
        self.refused(self.submit("#!/bin/sh\n" + SHARED, "--gres=gpu:a100:1", "-N1"))
        self.passes(self.submit("#!/bin/sh\n" + HOPELESS))  # no GPU is asked for

    def test_04_a_job_may_be_changed_by_scontrol(self):
        number = self.passes(self.submit("#!/bin/sh\ntrue\n", "--gres=gpu:a100:1"))
        for change in (f"Comment=memfathom={self.folder}/job.sh", "TimeLimit=5", "Nice=10"):
            self.slurm.run(["scontrol", "update", f"JobId={number}", change])
        self.slurm.run(["scontrol", "requeue", number], check=False)

    def test_05_the_controller_reads_with_the_rights_of_the_user(self):
        secret = self.folder / "secret.yaml"
        secret.write_text(SECRET)
        self.refused(self.submit("#!/bin/sh\ntrue\n", "--gres=gpu:a100:1", f"--comment=memfathom={secret}", user=USER))
        secret.chmod(0o600)  # root's alone from here on
        done = self.submit("#!/bin/sh\ntrue\n", "--gres=gpu:a100:1", f"--comment=memfathom={secret}", user=USER)
        self.passes(done)
        self.assertNotIn("GiB", done.stderr)
        self.refused(self.submit("#!/bin/sh\ntrue\n", "--gres=gpu:a100:1", f"--comment=memfathom={secret}"))
        self.refused(self.submit("#!/bin/sh\n" + HOPELESS, "--gres=gpu:a100:1", user=USER))

    def test_06_a_locked_or_broken_database(self):
        self.slurm.run([MEMFATHOM, "db", "info"], check=False)
        kept = self.database.read_bytes() if self.database.exists() else None
        self.database.unlink(missing_ok=True)
        lock = sqlite3.connect(self.database, isolation_level=None)
        lock.execute("create table x (y)")
        lock.execute("begin exclusive")
        self.passes(self.submit("#!/bin/sh\n./simulate\n", "--gres=gpu:a100:1"), "let through")
        lock.execute("rollback")
        lock.close()
        for text in (b"no database", b""):
            self.database.write_bytes(text)
            self.passes(self.submit("#!/bin/sh\n./simulate\n", "--gres=gpu:a100:1"), "let through")
        self.database.unlink()
        if kept is not None:
            self.database.write_bytes(kept)

    def write_filter(self, name, text):
        """The controller reads a filter again if its time differs by a second from the one that was read."""
        path = self.slurm.conf.parent / name
        later = path.stat().st_mtime + 10
        path.write_text(text)
        os.utime(path, (later, later))

    def test_07_programs_that_hang_crash_or_talk_too_much(self):
        originals = {name: (self.slurm.conf.parent / name).read_text() for name in ("cli_filter.lua", "job_submit.lua")}
        for number, text in enumerate(("exec sleep 600", "kill -9 $$", "exit 1", "yes", "sleep 600 & wait", "trap '' TERM INT; while :; do :; done",
                                       "echo refuse", "echo nonsense; echo x")):
            program = self.folder / f"program-{number}.sh"
            program.write_text(f"#!/bin/sh\n{text}\n")
            program.chmod(0o755)
            for name, original in originals.items():
                self.write_filter(name, re.sub(r'local program = ".*"', f'local program = "{program}"',
                                               original.replace(f'local limit = "{PATIENCE}"', f'local limit = "{LIMIT}"')))
            done = self.submit("#!/bin/sh\ntrue\n", "--gres=gpu:a100:1", limit=LIMIT)
            if text != "echo refuse":  # that is an answer
                self.passes(done)
        for name, original in originals.items():
            self.write_filter(name, original)
        # A filter that has just been put back may need more than its two seconds once, and then lets through.
        for _ in range(5):
            done = self.submit("#!/bin/sh\n" + HOPELESS, "--gres=gpu:a100:1")
            if done.returncode != 0:
                break
        self.refused(done)
        stuck = [line for line in subprocess.run(["ps", "-eo", "args"], text=True, capture_output=True).stdout.splitlines()
                 if str(self.folder) in line and "program-" in line]
        self.assertEqual(stuck, [])


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    MEMFATHOM, PROJECT = os.path.abspath(sys.argv[1]), pathlib.Path(sys.argv[2]).resolve()
    reason = cluster.why_not()
    if reason:
        print("skipped:", reason)
        sys.exit(77)
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]], verbosity=2)

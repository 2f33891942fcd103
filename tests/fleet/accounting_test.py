#!/usr/bin/env python3
"""memfathom fleet with a real slurmdbd and MariaDB, a node with GPUs of two types, and arrays of at most two tasks.

usage: accounting_test.py MEMFATHOM PROJECT [TEST...]. Exit code 77: skipped, with the reason.
Slurm 22.05 measures no GPU memory, and nothing here has NVML: the jobs, steps, tasks and allocations are accounted by Slurm, and the
one figure gres/gpumem is put into its database, in the form of Slurm 24.11 (src/plugins/gpu/nvml). sacct prints it.
"""

import json
import os
import pathlib
import shlex
import subprocess
import sys
import unittest

import accounting
import cluster

NODES = {"m1": "a100,h100", "m2": "a100", "m3": "h100"}
VIRTUAL = ["--device", "virtual:%t", "--interval", "0.2"]
JOB = "model: {preset: gpt2}\ntraining: {batch_size: 4, sequence_length: 512}\n"
PIPE = "a comment | with the separator; memfathom={job}"


class AccountingTest(cluster.ClusterTest):
    name = "accounting"

    @classmethod
    def make_cluster(cls, folder):
        return accounting.AccountedCluster(folder, NODES, "MaxArraySize=2")

    def fleet(self, *words, code=0):
        done = self.slurm.run([MEMFATHOM, "fleet", *words], check=False, cwd=self.folder)
        self.assertEqual(done.returncode, code, f"{words}\n{done.stdout}\n{done.stderr}")
        return done

    def submit(self, comment, *options, run="srun true"):
        return self.slurm.run(["sbatch", "--parsable", f"--comment={comment}", "-o", "/dev/null", *options, f"--wrap={run}"]).stdout.strip()

    def records(self):
        command = next(line.strip().rstrip("|").strip() for line in RECIPE.read_text().splitlines() if line.strip().startswith("sacct "))
        return self.slurm.run([*shlex.split(command.replace("yesterday", "now-1hour"))]).stdout

    def test_1_records_of_slurmdbd_become_observations(self):
        job = self.folder / "job.yaml"
        job.write_text(JOB)
        plain = self.submit(f"memfathom={job}", "--gres=gpu:a100:1")
        odd = self.submit(PIPE.format(job=job), "--gres=gpu:h100:1")
        inline = self.submit('memfathom={"model": {"preset": "gpt2"}, "training": {"batch_size": 8, "sequence_length": 512}}', "--gres=gpu:h100:1")
        shared = self.submit(f"memfathom={job}", "--nodelist=m1", "--gres=gpu:2")
        silent = self.submit("no description", "--gres=gpu:a100:1")
        unmeasured = self.submit(f"memfathom={job}", "--gres=gpu:a100:1")
        names = {plain: "plain", odd: "odd", inline: "inline", shared: "shared", silent: "silent", unmeasured: "unmeasured"}
        self.slurm.wait_for(lambda: not self.slurm.run(["squeue", "-h"]).stdout, "an empty queue")
        self.slurm.wait_for(lambda: self.records().count(".0|") == len(names), "the steps of all jobs in slurmdbd")
        tres = dict(reversed(line.split("|")) for line in self.slurm.run(
            ["sacctmgr", "-n", "-P", "show", "tres", "format=id,name"]).stdout.splitlines())
        memory = int(tres["gpumem"])
        for number, size in ((plain, 13000 << 20), (odd, 6543 << 20), (inline, 7000 << 20), (shared, 26000 << 20), (silent, 5 << 30)):
            self.slurm.sql("update fleet_step_table s join fleet_job_table j using (job_db_inx) set s.tres_usage_in_max = "
                           f"trim(leading ',' from concat(s.tres_usage_in_max, ',{memory}={size}')) where j.id_job = {number} and s.id_step = 0")
        records = self.records()
        self.assertIn(f"gres/gpumem={13000 << 20}", records)
        print(records)
        done = subprocess.run([sys.executable, RECIPE], input=records, text=True, capture_output=True)
        self.assertIn("3 of 6 jobs have a description and an accounted GPU memory; 1 left out, whose tasks have several GPUs", done.stderr)
        rows = {names[row["note"].split()[-1]]: row for row in map(json.loads, done.stdout.splitlines())}
        self.assertEqual(set(rows), {"plain", "odd", "inline"})
        self.assertEqual((rows["plain"]["bytes"], rows["plain"]["gpu"]), (13000 << 20, "a100"))
        self.assertEqual((rows["odd"]["bytes"], rows["odd"]["gpu"], rows["odd"]["job"]), (6543 << 20, "h100", str(job)))
        runs = self.folder / "runs.jsonl"
        runs.write_text(done.stdout)
        for expected in ("3 observations added, 0 already stored\n", "0 observations added, 3 already stored\n"):
            kept = self.slurm.run([MEMFATHOM, "observe", runs], check=False)
            self.assertEqual(kept.stdout, expected, kept.stderr)

    def test_2_every_type_of_a_node_is_benched_and_long_arrays_are_split(self):
        bench = ["--scale", "tiny", "--repetitions", "2", "--concurrency", "2", *VIRTUAL]
        first = self.fleet("bench", "--save-baseline", "good", *bench)
        self.assertRegex(first.stderr, r"4 tasks submitted as job \d+, then \d+")
        answer = json.loads(self.fleet("bench", "--baseline", "good", "--plant", "m1@h100:defect=300MiB", *bench, "--format", "json", "--quiet",
                                       code=1).stdout)
        verdicts = {(row["node"], row["type"]): row["verdict"] for row in answer["nodes"]}
        self.assertEqual({key for key in verdicts}, {("m1", "a100"), ("m1", "h100"), ("m2", "a100"), ("m3", "h100")})
        self.assertEqual((verdicts["m1", "a100"], verdicts["m2", "a100"]), ("same", "same"))
        self.assertEqual(verdicts["m1", "h100"], "suspect")
        for row in answer["nodes"]:
            self.assertIn(row["type"], row["gpu"])
        seen = sorted(path.name for path in (self.database.parent / "fleet/nodes").iterdir())
        self.assertEqual(seen, ["m1@a100.json", "m1@h100.json", "m2@a100.json", "m3@h100.json"])

    def test_3_no_process_of_memfathom_stays(self):
        """No daemon: when the jobs have ended, nothing of it runs."""
        self.slurm.wait_for(lambda: not self.slurm.run(["squeue", "-h"]).stdout, "an empty queue")
        mine = f"MEMFATHOM_DB={self.database}".encode()
        running = []
        for folder in pathlib.Path("/proc").glob("[0-9]*"):
            try:
                if mine in (folder / "environ").read_bytes().split(b"\0") and "memfathom" in os.readlink(folder / "exe"):
                    running.append((folder / "cmdline").read_bytes())
            except OSError:
                continue
        self.assertEqual(running, [])



if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    MEMFATHOM, PROJECT = os.path.abspath(sys.argv[1]), pathlib.Path(sys.argv[2]).resolve()
    RECIPE = PROJECT / "examples/fleet/observe-finished-jobs.py"
    reason = accounting.why_not()
    if reason:
        print("skipped:", reason)
        sys.exit(77)
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]], verbosity=2)

#!/usr/bin/env python3
"""memfathom fleet with a real Slurm: six nodes with virtual GPUs of three types on the loopback interface.

usage: fleet_test.py MEMFATHOM PROJECT [TEST...]. Exit code 77: skipped, with the reason.
The GPUs are simulated: nothing here measures hardware. Waiting is for Slurm's own states, never for a time.
"""

import json
import os
import pathlib
import re
import shutil
import statistics
import subprocess
import sys
import time
import unittest

import cluster

NODES = {"n1": "a100", "n2": "a100", "n3": "a100", "n4": "h100", "n5": "h100", "n6": "rtx_4090"}
SUBMISSIONS = 200
VIRTUAL = ["--device", "virtual:%t", "--interval", "0.2"]
HOPELESS = "python train.py --model_name_or_path meta-llama/Llama-2-7b-hf --bf16 --per_device_train_batch_size 8\n"
SMALL = "model: {preset: gpt2}\ntraining: {batch_size: 1, sequence_length: 128, precision: bf16}\n"
LORA = "model: {preset: llama-2-7b}\ntraining: {batch_size: 8, sequence_length: 2048, precision: bf16, lora: {rank: 8}}\n"


class FleetTest(cluster.ClusterTest):
    """The tests run in the order of their numbers and share the cluster and its database."""

    @classmethod
    def make_cluster(cls, folder):
        return cluster.Cluster(folder, NODES)

    def setUp(self):
        self.started = time.monotonic()

    def tearDown(self):
        print(f"({time.monotonic() - self.started:.0f} s) ", end="", file=sys.stderr)

    def memfathom(self, *words, code=0, **options):
        done = self.slurm.run([MEMFATHOM, *words], check=False, cwd=self.folder, **options)
        self.assertEqual(done.returncode, code, f"{words}\n{done.stdout}\n{done.stderr}")
        return done

    def fleet(self, *words, code=0, **options):
        return self.memfathom("fleet", *words, code=code, **options)

    def fleet_json(self, *words, code=0):
        return json.loads(self.fleet(*words, "--format", "json", "--quiet", code=code).stdout)

    def start(self, *words):
        """A command of the fleet that is not waited for."""
        return subprocess.Popen([MEMFATHOM, "fleet", *words], env=self.slurm.env, cwd=self.folder, text=True,
                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def queue(self, *words):
        return self.slurm.run(["squeue", "-h", "-r", *words]).stdout.split()

    def idle_again(self):
        self.slurm.wait_for(lambda: not self.queue(), "an empty queue", 180)

    def test_01_calibrates_one_node_of_each_type_and_merges_their_databases(self):
        answer = self.fleet_json("calibrate", "--plan", "quick", *VIRTUAL)
        self.assertEqual([row["type"] for row in answer["types"]], ["a100", "h100", "rtx_4090"])
        for row in answer["types"]:
            self.assertEqual(row["state"], "done", row)
            self.assertEqual(NODES[row["node"]], row["type"])
            self.assertEqual(row["calibration"]["name"], f"virtual:{row['type']}/memfathom")
        self.assertEqual(answer["merge"]["state"], "done")
        info = json.loads(self.memfathom("db", "info", "--format", "json").stdout)
        self.assertEqual(info["rows"]["calibrations"], 3)
        self.assertEqual(info["rows"]["annotations"], 3)
        type(self).fingerprint = info["fingerprint"]

    def test_02_calibrating_again_adds_nothing(self):
        self.fleet_json("calibrate", "--plan", "quick", *VIRTUAL)
        info = json.loads(self.memfathom("db", "info", "--format", "json").stdout)
        self.assertEqual(info["fingerprint"], self.fingerprint)

    def test_03_the_status_names_calibration_provenance_and_what_is_virtual(self):
        self.fleet("status", "--survey", *VIRTUAL)
        nodes = {row["node"]: row for row in self.fleet_json("status")["nodes"]}
        self.assertEqual(set(nodes), set(NODES))
        for name, row in nodes.items():
            self.assertEqual(row["status"], "calibrated", row)
            self.assertEqual(row["type"], NODES[name])
            self.assertTrue(row["calibration"]["virtual"])
            self.assertEqual(NODES[row["calibration"]["measured_on"]["node"]], NODES[name])
            self.assertRegex(row["calibration"]["measured_on"]["job"], r"^\d+$")
        self.assertIn("virtual:a100/memfathom", self.fleet("status").stdout)

    def test_04_a_planted_bad_node_among_six_is_the_only_suspect_and_drained_on_request(self):
        bench = ["--scale", "tiny", "--repetitions", "3", "--concurrency", "3", *VIRTUAL]
        self.fleet("bench", "--save-baseline", "good", *bench)
        answer = self.fleet_json("bench", "--baseline", "good", "--plant", "n2:defect=300MiB", *bench, code=1)
        self.assertEqual({row["node"]: row["verdict"] for row in answer["nodes"]},
                         {name: "suspect" if name == "n2" else "same" for name in NODES})
        suspect = next(row for row in answer["nodes"] if row["node"] == "n2")
        self.assertIn("context", suspect["moved"])
        self.assertEqual(suspect["stack_changes"], [])
        self.assertEqual(suspect["siblings"], 2)
        self.assertEqual(self.slurm.states()["n2"], "idle")
        upgraded = self.fleet_json("bench", "--baseline", "good", "--drain", "--plant", "n2:defect=300MiB",
                                   "--plant", "n4:context=300MiB", "--plant", "n5:context=300MiB", *bench, code=1)
        verdicts = {row["node"]: row for row in upgraded["nodes"]}
        self.assertEqual({name: row["verdict"] for name, row in verdicts.items()},
                         {"n1": "same", "n2": "suspect", "n3": "same", "n4": "version", "n5": "version", "n6": "same"})
        self.assertIn("driver simulated → simulated+context=300MiB", verdicts["n4"]["blamed"])
        self.assertEqual([name for name, row in verdicts.items() if row["drained"]], ["n2"])
        self.assertEqual(self.slurm.states()["n2"], "drained")
        self.assertIn("memfathom: ", self.slurm.run(["sinfo", "-h", "-R", "-o", "%E"]).stdout)
        nodes = {row["node"]: row for row in self.fleet_json("status")["nodes"]}
        self.assertEqual(nodes["n4"]["status"], "stale")
        self.assertEqual(nodes["n4"]["changes"][0]["name"], "driver")

    def test_05_metrics_pass_promtool(self):
        metrics = self.fleet("metrics").stdout
        self.assertIn('memfathom_fleet_bench_verdict{node="n2",type="a100",baseline="good",verdict="suspect"} 1', metrics)
        self.assertIn('memfathom_fleet_calibration_stale{node="n4",type="h100"} 1', metrics)
        self.assertIn('virtual="true"', metrics)
        status = self.memfathom("status", "--format", "openmetrics").stdout
        self.assertIn('memfathom_device_memory_bytes{device="cpu"', status)
        if shutil.which("promtool") is None:
            self.skipTest("promtool is missing; install prometheus")
        for text in (metrics, status):
            checked = subprocess.run(["promtool", "check", "metrics"], input=text, text=True, capture_output=True)
            self.assertEqual((checked.returncode, checked.stderr), (0, ""), text)
        self.slurm.run(["scontrol", "update", "NodeName=n2", "State=RESUME"])

    def test_06_a_node_that_dies_in_the_middle_loses_nothing(self):
        following = self.start("calibrate", "--plan", "quick", "--again", *VIRTUAL)
        states = {}

        def running():
            out = self.slurm.run(["squeue", "-h", "-n", "memfathom-calibrate", "-t", "RUNNING", "-o", "%N"]).stdout.split()
            states["node"] = next((name for name in out if NODES[name] in ("a100", "h100")), None)
            return states["node"] is not None

        self.slurm.wait_for(running, "a running calibration")
        dead = states["node"]
        self.slurm.kill_node(dead)
        out, err = following.communicate(timeout=240)
        self.assertEqual(following.returncode, 0, out + err)
        self.assertNotIn("failed", out)
        folder = self.database.parent / "fleet/calibrate"
        outcome = json.loads((folder / f"{NODES[dead]}.outcome.json").read_text())
        self.assertEqual(outcome["exit_code"], 0)
        self.assertNotEqual(outcome["node"], dead, "the job was requeued to another node of its type")
        self.assertEqual(self.memfathom("db", "check").stdout, "ok\n")
        self.slurm.start_node(dead)
        self.slurm.wait_for(lambda: self.slurm.states().get(dead) == "idle", f"{dead} idle again")
        self.idle_again()

    def test_07_the_controller_may_restart_while_a_bench_is_followed(self):
        following = self.start("bench", "--save-baseline", "second", "--scale", "tiny", "--concurrency", "2", *VIRTUAL)
        self.slurm.wait_for(lambda: self.queue("-n", "memfathom-bench", "-t", "RUNNING"), "a running bench")
        self.slurm.stop_daemon("slurmctld")
        self.slurm.start_controller()
        out, err = following.communicate(timeout=240)
        self.assertEqual(following.returncode, 0, out + err)
        self.assertEqual(out.count(" same "), len(NODES), out)

    def test_08_an_abandoned_campaign_is_resumed(self):
        first = self.fleet_json("calibrate", "--plan", "quick", "--again", "--no-wait", *VIRTUAL)
        resumed = self.fleet("calibrate", "--plan", "quick", "--again", *VIRTUAL)
        self.assertIn("resuming: 3 of 3 jobs", resumed.stderr)
        for row in first["types"]:
            self.assertIn(row["job"], resumed.stdout)

    def test_09_a_type_without_a_healthy_node_is_reported(self):
        self.slurm.run(["scontrol", "update", "NodeName=n6", "State=DOWN", "Reason=power supply"])
        answer = self.fleet_json("calibrate", "--plan", "quick", *VIRTUAL, code=4)
        row = next(row for row in answer["types"] if row["type"] == "rtx_4090")
        self.assertEqual(row["state"], "no healthy node")
        self.assertIn("n6", row["problem"])
        self.assertIn("power supply", row["problem"])
        self.assertEqual(answer["merge"]["state"], "done")
        if self.slurm.states()["n6"] != "idle":  # ReturnToService may have brought it back already
            self.slurm.run(["scontrol", "update", "NodeName=n6", "State=RESUME"])
        self.slurm.wait_for(lambda: self.slurm.states()["n6"] == "idle", "n6 idle")

    def latencies(self):
        script = self.folder / "small.sh"
        seconds = []
        for _ in range(SUBMISSIONS):
            start = time.perf_counter()
            self.slurm.run(["sbatch", "--parsable", "--hold", "--gres=gpu:a100:1", "-o", "/dev/null", script], cwd=self.folder)
            seconds.append(time.perf_counter() - start)
        self.slurm.run(["scancel", "--user=root"])
        self.idle_again()
        ordered = sorted(seconds)
        return statistics.median(ordered), ordered[int(0.99 * len(ordered)) - 1]

    def install_filters(self):
        self.fleet("install-filter", "--to", self.slurm.conf.parent, "--gpus", "a100=a100-40gb")
        self.slurm.conf.write_text(self.slurm.conf.read_text() + "CliFilterPlugins=cli_filter/lua\n"
                                   "JobSubmitPlugins=job_submit/lua\n")
        self.slurm.stop_daemon("slurmctld")
        self.slurm.start_controller()
        self.slurm.wait_for(lambda: self.slurm.states().get("n1") == "idle", "the controller's answer")

    def submit(self, name, text, *options):
        script = self.folder / name
        script.write_text("#!/bin/sh\n" + text)
        return self.slurm.run(["sbatch", "--hold", "-o", "/dev/null", *options, script], check=False, cwd=self.folder)

    def test_10_admission_lets_through_refuses_and_fails_open(self):
        (self.folder / "small.sh").write_text("#!/bin/sh\ntrue\n")
        (self.folder / "small.sh.memfathom.yaml").write_text(SMALL)
        without = self.latencies()
        self.install_filters()
        fits = self.submit("fits.sh", "true\n", "--gres=gpu:a100:1", "--comment=memfathom=small.sh.memfathom.yaml")
        self.assertEqual(fits.returncode, 0, fits.stderr)
        self.assertIn("this job fits", fits.stderr)
        refused = self.submit("hopeless.sh", HOPELESS, "--gres=gpu:a100:1")
        self.assertNotEqual(refused.returncode, 0, refused.stderr)
        self.assertIn("this job does not fit", refused.stderr)
        self.assertIn("memfathom recommend", refused.stderr)
        self.assertIn("a100-40gb", refused.stderr)
        print("\nrefusal:", refused.stderr.strip().splitlines()[-2])
        (self.folder / "lora.yaml").write_text(LORA)
        advised = self.submit("lora.sh", "true\n", "--gres=gpu:a100:1", "--comment=memfathom=lora.yaml")
        self.assertNotEqual(advised.returncode, 0, advised.stderr)
        self.assertRegex(advised.stderr, "error: memfathom: this job does not fit.*(cheapest change with which it fits: |.memfathom recommend. finds changes)")
        unknown = self.submit("unknown.sh", "./simulate --steps 5\n", "--gres=gpu:a100:1")
        self.assertEqual(unknown.returncode, 0, unknown.stderr)
        self.assertIn("let through", unknown.stderr)
        no_gpu = self.submit("cpu.sh", HOPELESS)
        self.assertEqual((no_gpu.returncode, no_gpu.stderr), (0, ""))
        exported = self.submit("exported.sh", "true\n", "--gpus=rtx_4090:1", "--export=ALL,MEMFATHOM_JOB=small.sh.memfathom.yaml")
        self.assertEqual(exported.returncode, 0, exported.stderr)
        self.assertIn("this job fits", exported.stderr)
        self.slurm.run(["scancel", "--user=root"])
        self.idle_again()
        with_filter = self.latencies()
        for name, (median, p99) in (("without", without), ("with", with_filter)):
            print(f"{SUBMISSIONS} submissions {name} filters: p50 {1000 * median:.0f} ms, p99 {1000 * p99:.0f} ms")
        self.assertLess(with_filter[1], 2 + without[1], "the limit of both filters")

    def test_11_a_program_that_does_not_answer_or_is_missing_does_not_hold_up_a_submission(self):
        script = self.folder / "small.sh"
        stuck = self.folder / "stuck.sh"
        stuck.write_text("#!/bin/sh\nexec sleep 600\n")
        stuck.chmod(0o755)
        for program in (stuck, "/nonexistent/memfathom"):
            for name in ("cli_filter.lua", "job_submit.lua"):
                file = self.slurm.conf.parent / name
                file.write_text(re.sub(r'local program = ".*"', f'local program = "{program}"', file.read_text()))
            done = self.slurm.run(["sbatch", "--hold", "--gres=gpu:a100:1", "-o", "/dev/null", script], cwd=self.folder, timeout=30)
            self.assertIn("no answer within 2 s; the job is let through", done.stderr)
        self.slurm.run(["scancel", "--user=root"])
        self.idle_again()

    def test_12_a_batch_is_answered_by_a_job_array_and_merged(self):
        jobs = self.folder / "jobs.jsonl"
        with jobs.open("w") as out:
            for i in range(1000):
                job = {"model": {"preset": "gpt2"}, "training": {"batch_size": 1 + i % 7, "sequence_length": 128}}
                out.write(json.dumps({"id": f"job-{i}", "job": job}) + "\n")
        array = self.folder / "array.sh"
        array.write_text(f"#!/bin/sh\nexec {MEMFATHOM} estimate --batch jobs.jsonl --slim --gpu a100-40gb "
                         "--shard $SLURM_ARRAY_TASK_ID/4 --output part-$SLURM_ARRAY_TASK_ID.jsonl\n")
        merge = self.folder / "merge.sh"
        merge.write_text("#!/bin/sh\nfor i in 0 1 2 3; do cat part-$i.jsonl; done > answers.jsonl\n")
        first = self.slurm.run(["sbatch", "--parsable", "--array=0-3", "-o", "array-%a.log", array], cwd=self.folder).stdout.strip()
        self.slurm.run(["sbatch", f"--dependency=afterok:{first}", "-o", "merge.log", merge], cwd=self.folder)
        self.idle_again()
        whole = self.memfathom("estimate", "--batch", "jobs.jsonl", "--slim", "--gpu", "a100-40gb", "--verbose")
        self.assertIn("1000 jobs, 7 different", whole.stderr)
        self.assertEqual((self.folder / "answers.jsonl").read_text(), whole.stdout)

    def test_13_a_read_only_fleet_database_is_consulted_in_addition_to_ones_own(self):
        # Estimates leave virtual GPUs out, so one of their calibrations stands in for that of a real GPU.
        self.memfathom("db", "export", self.folder / "exported")
        calibration = json.loads(next((self.folder / "exported").glob("*a100*.json")).read_text())
        del calibration["id"]
        calibration.update(name="a100-40gb/pytorch", created="2026-01-01T00:00:00Z")
        calibration["environment"].update(gpu="NVIDIA A100-SXM4-40GB", architecture="sm_80", framework="pytorch",
                                          memory_total_bytes=40960 << 20)
        (self.folder / "stand-in.json").write_text(json.dumps(calibration))
        fleet_db = self.folder / "readonly/fleet.db"
        self.memfathom("--db", fleet_db, "db", "import", self.folder / "stand-in.json")
        fleet_db.chmod(0o444)
        fleet_db.parent.chmod(0o555)
        before = fleet_db.read_bytes()
        own = self.folder / "own.db"
        estimate = ["--db", own, "estimate", "--model", "gpt2", "--sequence-length", "128", "--gpu", "a100-40gb", "--format", "json"]
        both = {"MEMFATHOM_FLEET_DB": str(fleet_db)}
        self.assertEqual(json.loads(self.memfathom(*estimate).stdout)["calibration"]["name"], "current/pytorch")
        used = json.loads(self.memfathom(*estimate, env=both).stdout)["calibration"]
        self.assertEqual((used["name"], used["created"]), ("a100-40gb/pytorch", "2026-01-01T00:00:00Z"))
        calibration["created"] = "2026-02-01T00:00:00Z"
        (self.folder / "newer.json").write_text(json.dumps(calibration))
        self.memfathom("--db", own, "db", "import", self.folder / "newer.json")
        used = json.loads(self.memfathom(*estimate, env=both).stdout)["calibration"]
        self.assertEqual(used["created"], "2026-02-01T00:00:00Z", "the newest of both")
        self.assertEqual(fleet_db.read_bytes(), before)

    def test_14_concurrent_merges_wait_for_each_other(self):
        target = self.folder / "merged.db"
        sources = list((self.database.parent / "fleet/calibrate").glob("*.db"))
        self.assertEqual(len(sources), 3)
        processes = [subprocess.Popen([MEMFATHOM, "--db", str(target), "db", "merge", str(source)], env=self.slurm.env,
                                      stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
                     for source in sources * 3]
        for process in processes:
            self.assertEqual(process.wait(120), 0, process.stderr.read())
            process.stderr.close()
        merged = json.loads(self.memfathom("--db", target, "db", "info", "--format", "json").stdout)
        self.assertEqual(merged["rows"]["annotations"] >= 3, True)
        again = json.loads(self.memfathom("--db", target, "db", "merge", *sources, "--format", "json").stdout)
        self.assertTrue(all(not any(v for k, v in row.items() if k != "from") for row in again["added"]), again)

    def test_15_the_commands_of_the_guide_work_as_written(self):
        guide = (PROJECT / "docs/fleet.md").read_text()
        commands = [line.removeprefix("    $ ") for line in guide.splitlines() if line.startswith("    $ memfathom fleet ")]
        self.assertGreaterEqual(len(commands), 6)
        for command in commands:
            words = command.split("#")[0].split()[2:]
            if words[0] == "install-filter":
                words += ["--to", str(self.slurm.conf.parent)]
            if words[0] in ("calibrate", "bench") or "--survey" in words:
                words += VIRTUAL
            if words[0] == "calibrate":
                words[words.index("standard")] = "quick"
                words = [word for word in words if word not in ("--framework", "pytorch")]
            if words[0] == "bench":
                words += ["--scale", "tiny"]
            with self.subTest(command):
                self.fleet(*words)


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    MEMFATHOM, PROJECT = os.path.abspath(sys.argv[1]), pathlib.Path(sys.argv[2]).resolve()
    reason = cluster.why_not()
    if reason:
        print("skipped:", reason)
        sys.exit(77)
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]], verbosity=2, failfast=True)

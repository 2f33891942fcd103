#!/usr/bin/env python3
"""The recipes of examples/fleet: rules and dashboard, scripts, manifests. What needs a missing tool is skipped with the reason.

usage: recipes_test.py MEMFATHOM PROJECT
"""

import json
import os
import pathlib
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

# Resources of the manifests, and metrics of others that the dashboard joins.
KINDS = {"Namespace", "PersistentVolumeClaim", "Job", "CronJob"}
ADMISSION_KINDS = {"Deployment", "Service", "ValidatingWebhookConfiguration", "MutatingWebhookConfiguration"}
FOREIGN_METRICS = {"DCGM_FI_DEV_FB_USED"}
# In the form that sacct 22.05 printed in accounting_test.py; the figures of gres/gpumem are made up.
SACCT = """\
101||billing=1,cpu=1,gres/gpu:rtx_4090=1,gres/gpu=1,node=1||memfathom={job}
101.batch|1|cpu=1,gres/gpu:rtx_4090=1,gres/gpu=1,mem=0,node=1|cpu=00:01:00,energy=0,fs/disk=28506,gres/gpumem=12G,gres/gpuutil=98,mem=3G|
101.0|1|cpu=1,gres/gpu:rtx_4090=1,gres/gpu=1,mem=0,node=1|cpu=00:01:00,gres/gpumem=13000M,gres/gpuutil=98,mem=3G|
102||billing=1,gres/gpu:a100=1,gres/gpu=1||no description
102.0|1|gres/gpu:a100=1,gres/gpu=1|gres/gpumem=5G|
103||billing=1,gres/gpu:a100=1,gres/gpu=1||memfathom={job}
103.0|1|gres/gpu:a100=1,gres/gpu=1|cpu=00:00:01|
104||billing=8,gres/gpu:a100=8,gres/gpu=8||memfathom={job}
104.0|1|gres/gpu:a100=8,gres/gpu=8|gres/gpumem=104000M|
garbage
a|b|c|d|e
"""


class RecipesTest(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="memfathom-recipes-"))
        self.addCleanup(shutil.rmtree, self.folder)
        self.env = dict(os.environ, MEMFATHOM_DB=str(self.folder / "own.db"), HOME=str(self.folder))

    def promtool(self, *words):
        if shutil.which("promtool") is None:
            self.skipTest("promtool is missing; install prometheus")
        done = subprocess.run(["promtool", *words], cwd=RECIPES, text=True, capture_output=True)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_promtool_accepts_the_alert_rules(self):
        self.promtool("check", "rules", "alerts.yml")

    def test_the_alerts_fire_when_they_should(self):
        self.promtool("test", "rules", "alerts_test.yml")

    def test_dashboard_and_alerts_use_only_metrics_of_the_contract(self):
        contract = (PROJECT / "docs/contract.md").read_text()
        dashboard = json.loads((RECIPES / "dashboard.json").read_text())
        expressions = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
        self.assertEqual(len({panel["id"] for panel in dashboard["panels"]}), len(dashboard["panels"]))
        text = "\n".join(expressions) + (RECIPES / "alerts.yml").read_text()
        used = set(re.findall(r"\b(?:memfathom|DCGM)_\w+", text))
        self.assertGreater(len(used), 5)
        for metric in used - FOREIGN_METRICS:
            self.assertIn(f"`{metric}`", contract)

    def test_a_shell_can_read_the_scripts(self):
        for script in RECIPES.glob("*.sh"):
            done = subprocess.run(["sh", "-n", str(script)], text=True, capture_output=True)
            self.assertEqual((done.returncode, done.stderr), (0, ""), script)

    def test_the_collector_writes_the_metrics_of_this_machine(self):
        env = dict(self.env, TEXTFILE_FOLDER=str(self.folder), PATH=f"{pathlib.Path(MEMFATHOM).parent}:{os.environ['PATH']}")
        done = subprocess.run([RECIPES / "textfile-collector.sh", "status"], env=env, text=True, capture_output=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("memfathom_device_memory_bytes", (self.folder / "memfathom.prom").read_text())

    def test_peaks_that_slurm_accounted_become_observations(self):
        job = self.folder / "job.yaml"
        job.write_text("model: {preset: gpt2}\ntraining: {batch_size: 4, sequence_length: 512}\n")
        done = subprocess.run([sys.executable, RECIPES / "observe-finished-jobs.py"], input=SACCT.format(job=job), text=True,
                              capture_output=True)
        self.assertIn("1 of 4 jobs", done.stderr)
        row = json.loads(done.stdout)
        self.assertEqual((row["bytes"], row["gpu"]), (13000 << 20, "rtx-4090"))
        runs = self.folder / "runs.jsonl"
        runs.write_text(done.stdout)
        for expected in ("1 observations added, 0 already stored\n", "0 observations added, 1 already stored\n"):
            kept = subprocess.run([MEMFATHOM, "observe", str(runs)], env=self.env, text=True, capture_output=True)
            self.assertEqual(kept.stdout, expected, kept.stderr)

    def test_monitoring_a_job_step_costs_little(self):
        step = subprocess.Popen(["sleep", "60"])
        self.addCleanup(step.wait)
        self.addCleanup(step.kill)
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        monitor = subprocess.Popen([MEMFATHOM, "monitor", str(step.pid), "--device", "cpu", "--interval", "1"], env=self.env, text=True,
                                   stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        time.sleep(8)
        monitor.send_signal(signal.SIGINT)
        printed = monitor.communicate()[0]
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        print(f"monitor, one reading a second, start included: {1000 * used / 8:.1f} ms of processor time a second")
        self.assertRegex(printed, r"\d readings")
        self.assertLess(used / 8, 0.02)

    def test_the_manifests_are_listed_and_follow_the_schemas_of_kubernetes(self):
        try:
            import kubernetes_validate
            import yaml
        except ImportError as error:
            self.skipTest(f"{error.name} is missing; pip install kubernetes-validate")
        for folder, expected in ((RECIPES / "kubernetes", KINDS), (RECIPES / "kubernetes/admission", ADMISSION_KINDS)):
            listed = yaml.safe_load((folder / "kustomization.yaml").read_text())["resources"]
            present = sorted(path.name for path in folder.glob("*.yaml") if path.name != "kustomization.yaml")
            self.assertEqual(sorted(listed), present)
            kinds = set()
            for name in listed:
                for document in yaml.safe_load_all((folder / name).read_text()):
                    kubernetes_validate.validate(document, kubernetes_validate.latest_version(), strict=True)
                    kinds.add(document["kind"])
            self.assertEqual(kinds, expected)

    def test_kubectl_renders_the_kustomizations(self):
        if shutil.which("kubectl") is None:
            self.skipTest("kubectl is missing; install kubernetes-client")
        for folder, kinds in ((RECIPES / "kubernetes", KINDS), (RECIPES / "kubernetes/admission", ADMISSION_KINDS)):
            done = subprocess.run(["kubectl", "kustomize", folder], text=True, capture_output=True)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(set(re.findall(r"^kind: (\w+)$", done.stdout, re.M)), kinds)
            self.assertNotRegex(done.stdout, r"image: memfathom$")
            self.assertNotIn("namespace: default", done.stdout)

    def test_the_webhook_manifest_fits_the_program(self):
        folder = RECIPES / "kubernetes/admission"
        webhooks = (folder / "webhooks.yaml").read_text()
        self.assertEqual(set(re.findall(r"path: (/\w+)", webhooks)), {"/validate", "/mutate"})
        self.assertEqual(re.findall(r"^    failurePolicy: (\w+)$", webhooks, re.M), ["Ignore"] * 2)
        command = re.search(r"command: \[memfathom, --db, \S+, (serve.*)\]", (folder / "deployment.yaml").read_text())[1].split(", ")
        done = subprocess.run([MEMFATHOM, *command], text=True, capture_output=True, timeout=30)
        self.assertIn("/tls/tls.crt cannot be read", done.stderr)  # every option was understood

    def test_the_ray_example_answers_as_one_process_does(self):
        try:
            import ray  # noqa: F401
        except ImportError:
            self.skipTest("ray is missing; pip install ray")
        jobs = self.folder / "jobs.jsonl"
        jobs.write_text("".join(json.dumps({"id": str(i), "job": {"model": {"preset": "gpt2"}, "training": {
            "batch_size": 1 + i % 5, "sequence_length": 128}}}) + "\n" for i in range(200)))
        answers = self.folder / "answers.jsonl"
        done = subprocess.run([sys.executable, RECIPES / "ray_batch.py", jobs, answers, "4", "a100-40gb"],
                              env=dict(self.env, MEMFATHOM=MEMFATHOM), text=True, capture_output=True)
        self.assertEqual(done.returncode, 0, done.stderr[-3000:])
        whole = subprocess.run([MEMFATHOM, "estimate", "--batch", str(jobs), "--slim", "--gpu", "a100-40gb"], env=self.env,
                               text=True, capture_output=True)
        self.assertEqual(len(whole.stdout.splitlines()), 200, whole.stderr)
        self.assertEqual(answers.read_text(), whole.stdout)


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    MEMFATHOM, PROJECT = os.path.abspath(sys.argv[1]), pathlib.Path(sys.argv[2]).resolve()
    RECIPES = PROJECT / "examples/fleet"
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]], verbosity=2)

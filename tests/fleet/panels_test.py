#!/usr/bin/env python3
"""Every expression of examples/fleet/dashboard.json through a real Prometheus that has scraped memfathom's metrics: each returns data.

usage: panels_test.py MEMFATHOM PROJECT. Exit code 77: skipped, with the reason. Grafana itself is not needed and was never used; where PyPI's
grafana-foundation-sdk is installed, the dashboard is also read by its models.
"""

import functools
import http.server
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import urllib.error
import urllib.parse
import urllib.request

import cluster

# What memfathom prints in a fleet with a suspect and with estimates; the names and labels are checked against the contract, and fleet_test.py shows
# that the program prints them. The last line is dcgm-exporter's.
METRICS = """\
memfathom_fleet_node_gpus{node="n1",type="a100",state="idle"} 4
memfathom_fleet_node_gpus{node="n2",type="a100",state="idle"} 4
memfathom_fleet_node_calibrated{node="n1",type="a100"} 1
memfathom_fleet_node_calibrated{node="n2",type="a100"} 1
memfathom_fleet_calibration_stale{node="n1",type="a100"} 0
memfathom_fleet_calibration_stale{node="n2",type="a100"} 1
memfathom_fleet_node_seen_timestamp_seconds{node="n1",type="a100"} NOW
memfathom_fleet_calibration_created_timestamp_seconds{type="a100",calibration="a100/pytorch",measured_on="n1",virtual="false"} NOW
memfathom_fleet_bench_verdict{node="n1",type="a100",baseline="good",verdict="same"} 1
memfathom_fleet_bench_verdict{node="n2",type="a100",baseline="good",verdict="suspect"} 1
memfathom_fleet_bench_timestamp_seconds{baseline="good"} NOW
memfathom_job_estimated_bytes{job="lora",bound="peak"} 2.1e10
memfathom_job_estimated_bytes{job="lora",bound="high"} 2.3e10
memfathom_device_memory_bytes{device="cuda:0",gpu="NVIDIA A100",kind="total"} 8.5e10
memfathom_device_memory_bytes{device="cuda:0",gpu="NVIDIA A100",kind="used"} 2.0e10
memfathom_process_memory_bytes{device="cuda:0",pid="4711",name="python"} 1.9e10
memfathom_device_usable{device="cuda:0"} 1
memfathom_calibration_created_timestamp_seconds{device="cuda:0",calibration="a100/pytorch"} NOW
memfathom_calibration_stale{device="cuda:0",calibration="a100/pytorch"} 0
DCGM_FI_DEV_FB_USED{gpu="0",Hostname="n1.cluster",modelName="NVIDIA A100-SXM4-80GB"} 19000
DCGM_FI_DEV_FB_USED{gpu="0",Hostname="n2.cluster",modelName="NVIDIA A100-SXM4-80GB"} 19000
"""


class Exporter(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        body = METRICS.replace("NOW", str(int(time.time()) - 3600)).encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/plain; version=0.0.4")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


def dashboard():
    return json.loads((PROJECT / "examples/fleet/dashboard.json").read_text())


def expressions():
    for panel in dashboard()["panels"]:
        for target in panel["targets"]:
            yield panel["title"], target["expr"], target.get("legendFormat", "")


class PanelsTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="memfathom-panels-"))
        cls.exporter = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Exporter)
        threading.Thread(target=cls.exporter.serve_forever, daemon=True).start()
        cls.port = cluster.free_ports(1)[0]
        (cls.folder / "prometheus.yml").write_text(
            "global: {scrape_interval: 1s}\nscrape_configs:\n- job_name: fleet\n  static_configs:\n"
            f"  - targets: ['127.0.0.1:{cls.exporter.server_address[1]}']\n")
        cls.prometheus = subprocess.Popen(
            ["prometheus", f"--config.file={cls.folder}/prometheus.yml", f"--storage.tsdb.path={cls.folder}/data",
             f"--web.listen-address=127.0.0.1:{cls.port}"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        end = time.monotonic() + 120
        while not cls.ask("up == 1"):
            if time.monotonic() > end:
                cls.tearDownClass()
                raise TimeoutError("Prometheus scraped nothing within 120 s")
            time.sleep(0.3)

    @classmethod
    def tearDownClass(cls):
        cls.prometheus.terminate()
        cls.prometheus.wait()
        cls.exporter.shutdown()
        cls.exporter.server_close()
        shutil.rmtree(cls.folder, ignore_errors=True)

    @classmethod
    def ask(cls, expression):
        query = urllib.parse.urlencode({"query": expression})
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{cls.port}/api/v1/query?{query}", timeout=30) as answer:
                return json.load(answer)["data"]["result"]
        except urllib.error.HTTPError as error:
            if error.code == 503:  # it is starting
                return []
            raise AssertionError(f"{expression}: {error.read().decode()}") from error
        except OSError:
            return []

    def test_every_panel_returns_data(self):
        count = 0
        for title, expression, legend in expressions():
            with self.subTest(title):
                rows = self.ask(expression)
                self.assertTrue(rows, expression)
                # Prometheus renames our label `job`, for example.
                for label in re.findall(r"\{\{(\w+)\}\}", legend):
                    self.assertTrue(all(label in row["metric"] for row in rows), (title, label, rows))
            count += 1
        self.assertGreater(count, 5)

    def test_the_join_of_the_guide_returns_data(self):
        guide = (PROJECT / "docs/fleet.md").read_text()
        join = re.search(r'^    (memfathom_fleet_bench_verdict\{verdict="suspect"\} \* on .*\n .*)$', guide, re.M)[1]
        self.assertEqual([row["metric"]["modelName"] for row in self.ask(join)], ["NVIDIA A100-SXM4-80GB"])

    def test_a_panel_without_its_metric_returns_nothing(self):
        self.assertEqual(self.ask("memfathom_no_such_metric"), [])

    def test_the_metrics_here_are_those_of_the_program(self):
        source = "\n".join((PROJECT / file).read_text() for file in ("cli/fleet/metrics.cc", "cli/status/status.cc"))
        for line in METRICS.splitlines():
            name, labels = re.match(r"(\w+)(?:\{(.*)\})?", line).groups()
            if name.startswith("DCGM"):
                continue
            self.assertIn(f'"{name}"', source)
            for label in re.findall(r'(\w+)="', labels or ""):
                self.assertIn(f'{{"{label}"', source, line)

    def test_the_dashboard_has_the_form_of_grafana(self):
        try:
            from grafana_foundation_sdk.models.dashboard import Dashboard
        except ImportError:
            self.skipTest("grafana-foundation-sdk is missing; pip install grafana-foundation-sdk")
        given = dashboard()
        read = Dashboard.from_json(given)
        self.assertEqual((read.title, read.uid, len(read.panels)), (given["title"], given["uid"], len(given["panels"])))
        known = set(functools.reduce(set.union, (set(json.loads(json.dumps(panel.to_json(), default=lambda value: value.to_json())))
                                                 for panel in read.panels), set()))
        for panel in given["panels"]:
            self.assertLessEqual(set(panel) - known, set(), panel["title"])
            grid = panel["gridPos"]
            self.assertLessEqual(grid["x"] + grid["w"], 24)


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    PROJECT = pathlib.Path(sys.argv[2]).resolve()
    if shutil.which("prometheus") is None:
        print("skipped: prometheus not found; install prometheus")
        sys.exit(77)
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]], verbosity=2)

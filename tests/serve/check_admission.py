#!/usr/bin/env python3
"""check_admission.py MEMFATHOM PROJECT: `memfathom serve --admission` over real TLS on the loopback, with the certificate that
examples/fleet/kubernetes/admission/make-certificate.sh makes, and the AdmissionReviews of tests/serve/reviews."""
import base64
import http.client
import json
import os
import pathlib
import re
import shutil
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
import time
import unittest

NAME = "memfathom-admission.memfathom.svc"
SLOW = {"model": {"preset": "qwen3-235b-a22b"}, "training": {"mode": "generate", "sequence_length": 2048, "new_tokens": 1048576, "precision": "bf16"}}


class Connection(http.client.HTTPSConnection):
    """To the loopback, but the certificate must be that of the service's name, as Kubernetes asks for it."""

    def connect(self):
        self.sock = self._context.wrap_socket(socket.create_connection(("127.0.0.1", self.port), self.timeout), server_hostname=NAME)


class Webhook:
    def __init__(self, folder, *options, database=None):
        self.folder = pathlib.Path(folder)
        words = [MEMFATHOM, *(["--db", str(database)] if database else []), "serve", "--admission", "--host", "127.0.0.1", "--port", "0",
                 "--quiet", "--tls-cert", f"{folder}/tls.crt", "--tls-key", f"{folder}/tls.key", *options]
        self.process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True, env={"PATH": os.environ["PATH"], "HOME": str(folder)})
        self.port = int(re.match(r"https://.*:(\d+)/", self.process.stdout.readline())[1])

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()
        self.process.stdout.close()

    def connection(self, authority=None):
        context = ssl.create_default_context(cafile=str(authority or self.folder / "ca.crt"))
        return Connection(NAME, self.port, timeout=30, context=context)

    def ask(self, method, path, body=None, kind="application/json", authority=None):
        connection = self.connection(authority)
        try:
            connection.request(method, path, body, {"Content-Type": kind} if body is not None else {})
            answer = connection.getresponse()
            return answer.status, answer.read()
        finally:
            connection.close()

    def review(self, review, path="/validate?timeout=5s"):
        status, text = self.ask("POST", path, json.dumps(review))
        assert status == 200, (status, text)
        answer = json.loads(text)
        assert set(answer) == {"apiVersion", "kind", "response"}, answer
        assert (answer["apiVersion"], answer["kind"]) == ("admission.k8s.io/v1", "AdmissionReview")
        assert answer["response"]["uid"] == review["request"]["uid"]
        return answer["response"]


def recorded(name):
    return json.loads((PROJECT / f"tests/serve/reviews/{name}.json").read_text())


class AdmissionTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="memfathom-admission-"))
        cls.made = subprocess.run([SCRIPT, cls.folder], check=True, text=True, capture_output=True).stdout
        cls.webhook = Webhook(cls.folder, "--time-limit", "30")  # the answers are tested: a busy machine is slow

    @classmethod
    def tearDownClass(cls):
        cls.webhook.__exit__()
        shutil.rmtree(cls.folder)

    def allowed(self, review, *sentences):
        response = self.webhook.review(review)
        self.assertTrue(response["allowed"], response)
        warnings = response.get("warnings", [])
        self.assertEqual(len(warnings), len(sentences), response)
        for warning, sentence in zip(warnings, sentences):
            self.assertIn(sentence, warning)
        return response

    def refused(self, review, *parts):
        response = self.webhook.review(review)
        self.assertFalse(response["allowed"], response)
        self.assertEqual(response["status"]["code"], 403)
        for part in ("memfathom: ", "this job does not fit", *parts):
            self.assertIn(part, response["status"]["message"])
        return response

    def test_what_does_not_fit_is_refused_with_the_reason(self):
        self.refused(recorded("pod-does-not-fit"), "on a100-40gb", "memfathom recommend")
        self.refused(recorded("job-shell-does-not-fit"), "spec.template: ", "on a100-40gb")
        self.refused(recorded("cronjob-does-not-fit"), "spec.jobTemplate: ", "on rtx-4090")
        message = self.refused(recorded("pytorchjob-does-not-fit"), "spec.pytorchReplicaSpecs.Master: ")["status"]["message"]
        self.assertIn("spec.pytorchReplicaSpecs.Worker: ", message)

    def test_what_fits_passes_without_a_word(self):
        self.allowed(recorded("pod-annotated"))

    def test_of_several_products_the_largest_decides(self):
        self.allowed(recorded("job-affinity-largest-fits"), "this job is tight")
        review = recorded("job-affinity-largest-fits")
        terms = review["request"]["object"]["spec"]["template"]["spec"]["affinity"]["nodeAffinity"]
        terms = terms["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
        terms[0]["matchExpressions"][0]["values"] = ["NVIDIA-A100-SXM4-40GB", "Tesla-T4"]
        self.refused(review, "on a100-40gb")
        terms.append({"matchExpressions": [{"key": "zone", "operator": "Exists"}]})
        self.allowed(review, "nothing names the type of its GPU")

    def test_what_is_not_understood_passes_with_a_warning(self):
        self.allowed(recorded("job-undescribed"), "let through")
        self.allowed(recorded("pod-mig"), 'the GPU product "NVIDIA-A100-SXM4-80GB-MIG-1g.10gb" is unknown')

    def test_a_sharded_job_is_shared_by_all_gpus_of_its_pytorchjob(self):
        self.allowed(recorded("pytorchjob-fsdp-on-all-gpus"))

    def test_what_is_not_its_business_passes_without_a_word(self):
        for name in ("pod-of-a-job", "pod-without-gpu", "job-update"):
            self.allowed(recorded(name))

    def test_an_annotation_wins_over_command_and_selector(self):
        review = recorded("pod-does-not-fit")
        review["request"]["object"]["metadata"]["annotations"] = {"memfathom.io/gpu": "mi325x"}
        self.allowed(review, "on mi325x")
        review["request"]["object"]["metadata"]["annotations"] = {"memfathom.io/job": "model: [no job"}
        self.allowed(review, "unknown, and let through")

    def test_mutate_annotates_and_never_refuses(self):
        for name, expected in (("pod-annotated", "this job fits: "), ("pod-does-not-fit", "this job does not fit: ")):
            review = recorded(name)
            response = self.webhook.review(review, "/mutate")
            self.assertTrue(response["allowed"])
            self.assertEqual(response["patchType"], "JSONPatch")
            changed = review["request"]["object"]
            for change in json.loads(base64.b64decode(response["patch"], validate=True)):
                self.assertEqual(change["op"], "add")
                holder = changed
                *path, last = [part.replace("~1", "/") for part in change["path"].split("/")[1:]]
                for part in path:
                    holder = holder[part]
                holder[last] = change["value"]
            self.assertIn(expected, changed["metadata"]["annotations"]["memfathom.io/estimate"])
            kept = recorded(name)["request"]["object"]["metadata"].get("annotations", {})
            self.assertEqual({k: v for k, v in changed["metadata"]["annotations"].items() if k != "memfathom.io/estimate"}, kept)
        self.assertNotIn("patch", self.webhook.review(recorded("pod-without-gpu"), "/mutate"))

    def test_hostile_bodies_get_4xx(self):
        good = recorded("pod-annotated")
        for body in ("", "{", "[]", "3", "null", "{}", '{"kind": "AdmissionReview"}', "\0", b"\xff\xfe", "[" * 100000, '{"a":' * 100000,
                     json.dumps({**good, "apiVersion": "admission.k8s.io/v1beta1"}), json.dumps({**good, "kind": "Pod"}),
                     json.dumps({**good, "request": None}), json.dumps({**good, "request": {**good["request"], "uid": ""}}),
                     json.dumps({**good, "request": {**good["request"], "uid": "u" * 1000}}),
                     json.dumps({**good, "request": {**good["request"], "uid": {"a": 1}}})):
            status, text = self.webhook.ask("POST", "/validate", body)
            self.assertEqual(status, 400, (body[:80], text))
            self.assertEqual(json.loads(text)["schema"], "memfathom.error/1")
        self.assertEqual(self.webhook.ask("POST", "/validate", json.dumps(good), kind="text/plain")[0], 415)
        self.assertEqual(self.webhook.ask("POST", "/validate", b"x" * (9 << 20))[0], 413)
        for method, path in (("GET", "/validate"), ("GET", "/"), ("POST", "/api/estimate"), ("PUT", "/mutate")):
            self.assertEqual(self.webhook.ask(method, path, "{}")[0], 404, (method, path))
        self.allowed(good)

    def test_objects_of_odd_shapes_are_let_through(self):
        good = recorded("pod-does-not-fit")
        spec = good["request"]["object"]["spec"]
        container = spec["containers"][0]
        odd = [None, 3, [], {}, {"spec": None}, {"spec": []}, {"spec": {"containers": [None, 3, {"resources": {"limits": {"nvidia.com/gpu": {}}}}]}},
               {"spec": {"containers": [{"resources": {"limits": {"nvidia.com/gpu": "1e99"}}}]}},
               {"spec": {"containers": [{"resources": {"limits": {"nvidia.com/gpu": -1}}}]}},
               {"metadata": {"annotations": {"memfathom.io/job": {"x": 1}}}, "spec": {"containers": [{"resources": {"limits": {"nvidia.com/gpu": 1}}}]}},
               {"spec": {**spec, "nodeSelector": [1], "containers": [{**container, "command": "python", "args": {"a": 1}, "env": [3, {"name": 1}]}]}},
               {"spec": {"template": {"spec": 3}, "xReplicaSpecs": {"a": None, "b": {"template": 3, "replicas": "x"}}}},
               {"spec": {"yReplicaSpecs": {str(i): {} for i in range(1000)}}}]
        for value in odd:
            good["request"]["object"] = value
            self.assertTrue(self.webhook.review(good)["allowed"], value)
            self.assertTrue(self.webhook.review(good, "/mutate")["allowed"], value)

    def test_files_that_a_pod_names_are_not_read(self):
        secret = self.folder / "secret.yaml"
        secret.write_text("model: {preset: llama-2-70b}\ntraining: {batch_size: 64, sequence_length: 4096}\npassword: hunter2\n")
        review = recorded("pod-does-not-fit")
        for words in (["axolotl", "train", str(secret)], ["python", "train.py", "--config", str(secret), "--model_name_or_path", str(self.folder)]):
            review["request"]["object"]["spec"]["containers"][0]["command"] = words
            response = self.webhook.review(review)
            self.assertTrue(response["allowed"], response)
            self.assertNotIn("hunter2", json.dumps(response))
            self.assertNotIn("password", json.dumps(response))

    def test_no_answer_in_time_lets_it_through(self):
        review = recorded("pod-annotated")
        review["request"]["object"]["metadata"]["annotations"]["memfathom.io/job"] = json.dumps(SLOW)
        with Webhook(self.folder, "--time-limit", "2", "--workers", "1") as webhook:
            answers = []
            threads = [threading.Thread(target=lambda: answers.append(self.timed(webhook, review))) for _ in range(3)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            for seconds, response in answers:
                self.assertTrue(response["allowed"])
                self.assertIn("no answer within 2 s; it is let through", response["warnings"][0])
                self.assertLess(seconds, 15)  # the estimate itself takes longer
            metrics = webhook.ask("GET", "/metrics")[1].decode()
            self.assertIn('memfathom_admission_reviews_total{decision="no_answer"} 3', metrics)
            end = time.monotonic() + 60
            while webhook.review(recorded("pod-does-not-fit"))["allowed"]:  # the worker was replaced, and answers in a calm second
                self.assertLess(time.monotonic(), end)

    @staticmethod
    def timed(webhook, review):
        start = time.monotonic()
        return (lambda response: (time.monotonic() - start, response))(webhook.review(review))

    def test_silent_connections_do_not_hold_up_others(self):
        silent = [socket.create_connection(("127.0.0.1", self.webhook.port)) for _ in range(20)]
        try:
            start = time.monotonic()
            self.allowed(recorded("pod-annotated"))
            self.assertLess(time.monotonic() - start, 20)
        finally:
            for one in silent:
                one.close()

    def test_only_tls_of_a_current_version_is_spoken(self):
        plain = http.client.HTTPConnection("127.0.0.1", self.webhook.port, timeout=10)
        with self.assertRaises((OSError, http.client.HTTPException)):
            plain.request("GET", "/healthz")
            plain.getresponse()
        plain.close()
        old = ssl.create_default_context(cafile=str(self.folder / "ca.crt"))
        old.set_ciphers("ALL:@SECLEVEL=0")
        old.minimum_version = old.maximum_version = ssl.TLSVersion.TLSv1_1
        with self.assertRaises(OSError):
            old.wrap_socket(socket.create_connection(("127.0.0.1", self.webhook.port)), server_hostname=NAME)
        self.assertEqual(self.webhook.ask("GET", "/healthz"), (200, b"ok\n"))

    def test_a_renewed_certificate_is_used_without_a_restart(self):
        folder = self.folder / "renewed"
        subprocess.run([SCRIPT, folder], check=True, capture_output=True)
        with Webhook(folder) as webhook:
            self.assertEqual(webhook.ask("GET", "/healthz")[0], 200)
            other = self.folder / "other"
            subprocess.run([SCRIPT, other], check=True, capture_output=True)
            (folder / "tls.key").write_text("half written")
            time.sleep(1.1)  # files are looked at once a second
            self.assertEqual(webhook.ask("GET", "/healthz")[0], 200, "the old certificate is kept")
            for name in ("tls.crt", "tls.key"):
                shutil.copy(other / name, folder / name)
            time.sleep(1.1)
            self.assertEqual(webhook.ask("GET", "/healthz", authority=other / "ca.crt")[0], 200)
            with self.assertRaises(ssl.SSLCertVerificationError):
                webhook.ask("GET", "/healthz")

    def test_bad_options_are_one_sentence(self):
        key, certificate = f"{self.folder}/tls.key", f"{self.folder}/tls.crt"
        for words, code, says in (
                (["--admission"], 2, "--tls-cert"), (["--tls-key", key], 2, "belong to --admission"),
                (["--admission", "--tls-cert", certificate, "--tls-key", "/nonexistent"], 2, "cannot be read"),
                (["--admission", "--tls-cert", key, "--tls-key", key], 2, "holds no certificate"),
                (["--admission", "--tls-cert", certificate, "--tls-key", f"{self.folder}/ca.key"], 2, "is not that of the certificate"),
                (["--admission", "--tls-cert", certificate, "--tls-key", key, "--probability", "0.2"], 2, "--probability"),
                (["--admission", "--tls-cert", certificate, "--tls-key", key, "--gpu", "h1000"], 2, "h1000"),
                (["--admission", "--tls-cert", certificate, "--tls-key", key, "--token-file", key], 2, "--token-file"),
                (["--admission", "--tls-cert", certificate, "--tls-key", key, "--port", "1", "--host", "203.0.113.9"], 4, "cannot be listened on")):
            done = subprocess.run([MEMFATHOM, "serve", *words], text=True, capture_output=True, timeout=30)
            self.assertEqual(done.returncode, code, (words, done.stderr))
            self.assertIn(says, done.stderr)
            self.assertEqual(done.stdout, "")

    def test_the_script_names_the_authority_for_the_manifest(self):
        self.assertEqual(base64.b64decode(self.made.removeprefix("caBundle: ")), (self.folder / "ca.crt").read_bytes())


if __name__ == "__main__":
    MEMFATHOM, PROJECT = os.path.abspath(sys.argv[1]), pathlib.Path(sys.argv[2]).resolve()
    SCRIPT = PROJECT / "examples/fleet/kubernetes/admission/make-certificate.sh"
    if shutil.which("openssl") is None:
        print("skipped: openssl not found; install openssl")
        sys.exit(77)
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]], verbosity=2)

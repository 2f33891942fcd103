#!/usr/bin/env python3
"""check_serve.py MEMFATHOM: `memfathom serve` on a free port of the loopback: the page and the answers are there, they are those of the
program, and hostile requests get 4xx."""
import http.client
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
JOB = {"model": {"preset": "gpt2"}, "training": {"batch_size": 4, "sequence_length": 256}, "target": {"gpu": "rtx-4090"}}


class Served:
    """A running server, ended at the end of the block."""

    def __init__(self, program, *options, **environment):
        self.home = tempfile.TemporaryDirectory(prefix="memfathom-serve-")
        self.process = subprocess.Popen([program, "serve", "--port", "0", "--quiet", *options], stdout=subprocess.PIPE, text=True,
                                        env={"PATH": os.environ["PATH"], "HOME": self.home.name, **environment})
        address = self.process.stdout.readline()
        self.host, self.port = re.match(r"http://(.*):(\d+)/", address).groups()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()
        self.home.cleanup()

    def ask(self, method, path, body=None, headers=None):
        connection = http.client.HTTPConnection("127.0.0.1", int(self.port), timeout=60)
        if isinstance(body, (dict, list)):
            body = json.dumps(body)
        base = {"Content-Type": "application/json"} if body is not None else {}
        connection.request(method, path, body, {**base, **(headers or {})})
        answer = connection.getresponse()
        text = answer.read()
        connection.close()
        return answer.status, text, answer


def expect(served, status, method, path, body=None, headers=None, says=""):
    found, text, _ = served.ask(method, path, body, headers)
    assert found == status, (method, path, str(body)[:100], found, text[:300])
    if status >= 400:
        error = json.loads(text)
        assert error["schema"] == "memfathom.error/1" and says in error["error"], error
    return text


def check_answers(program, served):
    _, page, answer = served.ask("GET", "/")
    assert b"<title>memfathom" in page
    assert "connect-src 'self'" in answer.getheader("Content-Security-Policy")
    for name in sorted(path.name for path in (ROOT / "web/page").iterdir() if path.name not in ("index.html", "worker.js")):
        assert expect(served, 200, "GET", f"/{name}") == (ROOT / "web/page" / name).read_bytes(), name
    job = pathlib.Path(served.home.name, "job.json")
    job.write_text(json.dumps(JOB))
    printed = subprocess.check_output([program, "estimate", str(job), "--format", "json"], env={"PATH": os.environ["PATH"], "HOME": served.home.name}, text=True)
    assert expect(served, 200, "POST", "/api/estimate", JOB).decode() == printed.rstrip("\n")
    assert len(json.loads(expect(served, 200, "GET", "/api/models"))["models"]) > 100
    assert json.loads(expect(served, 200, "POST", "/api/gpus", JOB))["gpus"][0]["verdict"]
    assert json.loads(expect(served, 200, "POST", "/api/recommend", JOB))["schema"] == "memfathom.recommend/1"
    assert json.loads(expect(served, 200, "POST", "/api/compare", JOB))["schema"] == "memfathom.compare/1"
    assert json.loads(expect(served, 200, "POST", "/api/oom", {"text": "CUDA out of memory. Tried to allocate 2.00 GiB."}))["tried_bytes"] == 2 << 30
    assert json.loads(expect(served, 200, "GET", "/api/status"))["schema"] == "memfathom.status/1"
    listed = json.loads(expect(served, 200, "GET", "/api/calibrations"))["calibrations"]
    assert "a100-40gb/pytorch" in [one["name"] for one in listed]
    described = json.loads(expect(served, 200, "GET", "/api/openapi.json"))
    for path, methods in described["paths"].items():
        for method in methods:
            assert served.ask(method.upper(), path, {} if method == "post" else None)[0] != 404, path


def check_hostile(served):
    expect(served, 403, "GET", "/", headers={"Host": "evil.example"}, says="Host")
    expect(served, 403, "POST", "/api/estimate", JOB, {"Origin": "http://evil.example"}, says="origin")
    expect(served, 415, "POST", "/api/estimate", JOB, {"Content-Type": "text/plain"}, says="application/json")
    expect(served, 404, "GET", "/../../etc/passwd", says="not served")
    expect(served, 404, "GET", "/worker.js", says="not served")
    for body in ("", "{", "[]", "null", "{\"a\": 1}", "[" * 10_000, "\0", "{\"model\": {\"preset\": \"gpt2\\u0000\"}}", "\xff"):
        expect(served, 400, "POST", "/api/estimate", body.encode("latin-1"))
    expect(served, 413, "POST", "/api/estimate", b"x" * (17 << 20))
    # Files of this machine are out of reach, whatever names them.
    secret = pathlib.Path(served.home.name, "config.json")
    secret.write_text('{"model_type": "very secret"}')
    for body in ({"files": [str(secret)]}, {"job": {"model": {"config": str(secret)}}}, {"job": {"model": {"trace": str(secret)}}},
                 {"job": {"model": {"preset": "gpt2"}}, "files": [str(secret.parent)]}, {"command": ["torchrun", "train.py", "--model_name_or_path", str(secret.parent)]}):
        text = expect(served, 400, "POST", "/api/estimate", body)
        assert b"secret" not in text, (body, text)


def check_time(program):
    with Served(program, "--time-limit", "1", "--workers", "1") as served:
        heavy = {"model": {"preset": "llama-2-70b"}, "training": {"batch_size": 1, "sequence_length": 4096, "lengths": "varying"}, "target": {"gpu": "a100-80gb"}}
        expect(served, 422, "POST", "/api/recommend", heavy, says="more than 1 s")
        expect(served, 200, "POST", "/api/estimate", JOB)  # by a new worker


def check_token(program):
    assert subprocess.run([program, "serve", "--host", "0.0.0.0", "--port", "0"], capture_output=True, check=False).returncode == 2
    assert subprocess.run([program, "serve", "--port", "70000"], capture_output=True, check=False).returncode == 2
    token = "0123456789abcdef0123"
    with Served(program, "--host", "0.0.0.0", MEMFATHOM_TOKEN=token) as served:
        expect(served, 200, "GET", "/")
        expect(served, 401, "GET", "/api/models", says="token")
        expect(served, 401, "GET", "/api/models", headers={"Authorization": "Bearer 0123456789abcdef012x"}, says="token")
        expect(served, 200, "GET", "/api/models", headers={"Authorization": f"Bearer {token}"})


def main():
    program = os.path.abspath(sys.argv[1])
    with Served(program) as served:
        check_answers(program, served)
        check_hostile(served)
    check_time(program)
    check_token(program)


main()

#!/usr/bin/env python3
"""Kills every command that writes at random moments, and sends signals to the long ones.

kills.py MEMFATHOM [--kills N] [--only COMMAND] [--log FILE]

After a kill the database passes `db check` (or does not exist yet), every file that stands under its final name is complete, no process of
the command is left, and the same command run again succeeds. After a signal (TERM, INT, HUP, USR1, PIPE, and STOP followed by CONT)
the command ends by itself with 0 or 128 + n, or dies of that signal, with the same conditions. --log appends "CLASS COMMAND TRIED INSIDE
FAILED SECONDS" lines for scripts/reliability; INSIDE counts those that hit a running command.
"""
import argparse
import json
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time

PATIENCE = 300
JOB = {"model": {"preset": "gpt2"}, "training": {"batch_size": 2, "sequence_length": 32}, "target": {"gpu": "t4"}}
SIGNALS = [signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1, signal.SIGPIPE, signal.SIGSTOP]


def environment():
    kept = {key: value for key, value in os.environ.items() if not key.startswith("MEMFATHOM_")}
    return {**kept, "MEMFATHOM_NVML": "/nonexistent"}


class Lab:
    def __init__(self, program):
        self.program = program
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="memfathom-kills-"))
        self.model = self.folder / "model"
        self.model.mkdir()
        self.job = self.model / "job.json"
        self.job.write_text(json.dumps(JOB))
        rows = [json.dumps({"job": "job.json", "metric": "device", "bytes": 3_000_000_000 + i, "gpu": "t4"}) for i in range(60)]
        (self.model / "runs.jsonl").write_text("\n".join(rows) + "\n")
        for name, words in {"full.db": ["calibrate", "--device", "virtual:blue"], "other.db": ["calibrate", "--device", "virtual:red"]}.items():
            self.call(self.model, ["--db", name, *words])
        self.call(self.model, ["--db", "other.db", "db", "export", "exported"])
        self.call(self.model, ["--db", "full.db", "observe", "runs.jsonl"])
        listed = json.loads(self.call(self.model, ["--db", "full.db", "samples", "list", "--format", "json"]))
        self.ids = [row["id"] for row in listed["samples"]]
        self.files = sorted(str(path.relative_to(self.model)) for path in (self.model / "exported").iterdir())

    def call(self, folder, words):
        done = subprocess.run([self.program, *words], cwd=folder, env=environment(), capture_output=True, timeout=PATIENCE, check=False)
        if done.returncode != 0:
            raise RuntimeError(f"{' '.join(map(str, words))} exits with {done.returncode}: {done.stderr.decode()[-400:]}")
        return done.stdout

    def commands(self):
        return {
            "calibrate": ["--db", "new.db", "calibrate", "--device", "virtual:blue"],
            "profile": ["--db", "new.db", "profile", "--device", "virtual:blue"],
            "fit": ["--db", "full.db", "fit", "--device", "virtual:blue"],
            "observe": ["--db", "new.db", "observe", "runs.jsonl"],
            "merge": ["--db", "full.db", "db", "merge", "other.db"],
            "import": ["--db", "new.db", "db", "import", *self.files],
            "backup": ["--db", "full.db", "db", "backup", "backup.db"],
            "export": ["--db", "full.db", "db", "export", "out"],
            "remove": ["--db", "full.db", "samples", "remove", *self.ids],
            "report": ["report", "estimate", "job.json", "--output", "report.html"],
        }

    def fresh(self):
        work = self.folder / "work"
        shutil.rmtree(work, ignore_errors=True)
        shutil.copytree(self.model, work)
        return work

    def start(self, work, words):
        return subprocess.Popen([self.program, *words], cwd=work, env=environment(), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                stderr=subprocess.DEVNULL, start_new_session=True)

    def problem(self, work, words, name):
        """What a command that was cut off left behind that it must not."""
        for database in work.glob("*.db"):
            if database.stat().st_size == 0:
                continue
            check = subprocess.run([self.program, "--db", database, "db", "check"], env=environment(), capture_output=True, timeout=PATIENCE,
                                   check=False)
            blank = b"it is empty" in check.stdout or b"is empty" in check.stderr
            if check.returncode != 0 and not (blank and database.name == "new.db"):
                return f"{database.name}: {(check.stdout + check.stderr).decode()[-300:]}"
        for path in (work / "out").glob("*.json"):
            json.loads(path.read_text())
        report = work / "report.html"
        if report.exists() and not report.read_text().rstrip().endswith("</html>"):
            return "report.html is cut off"
        (work / "backup.db").unlink(missing_ok=True)
        try:
            self.call(work, words)
        except RuntimeError as error:
            return f"{name} cannot be repeated: {error}"
        return None


def left_over(session):
    """Processes of a session that are still there a while after its leader ended."""
    for _ in range(100):
        found = []
        for entry in pathlib.Path("/proc").iterdir():
            if not entry.name.isdigit():
                continue
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            if int(fields[3]) == session and fields[0] != "Z":
                found.append(entry.name)
        if not found:
            return []
        time.sleep(0.05)
    return found


def cut_off(lab, words, name, number, delay):
    """Whether the signal hit the running command, and what went wrong."""
    work = lab.fresh()
    child = lab.start(work, words)
    time.sleep(delay)
    inside = child.poll() is None
    child.send_signal(number)
    if number == signal.SIGSTOP:
        time.sleep(0.05)
        child.send_signal(signal.SIGCONT)
    try:
        code = child.wait(timeout=PATIENCE)
    except subprocess.TimeoutExpired:
        os.killpg(child.pid, signal.SIGKILL)
        child.wait()
        return inside, f"{name} did not end after signal {number}"
    expected = {0, -number, 128 + number}
    if number == signal.SIGINT:
        expected.add(1)  # Ctrl-C: an orderly end after the current sample
    if code not in expected:
        return inside, f"{name} exits with {code} after signal {number}"
    if number == signal.SIGSTOP and code != 0:
        return inside, f"{name} exits with {code} after it was stopped and continued"
    left = left_over(child.pid)
    if left:
        return inside, f"{name} left the processes {left} behind after signal {number}"
    problem = lab.problem(work, words, name)
    return inside, problem and f"{name} after signal {number} at {delay:.3f} s: {problem}"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--only", action="append")
    parser.add_argument("--log")
    options = parser.parse_args()
    chance = random.Random(20261118)
    lab = Lab(os.path.abspath(options.program))
    findings = []
    try:
        for name, words in lab.commands().items():
            if options.only and name not in options.only:
                continue
            began = time.monotonic()
            lab.call(lab.fresh(), words)
            whole = time.monotonic() - began
            kinds = {"kill": [signal.SIGKILL] * options.kills}
            if name in ("calibrate", "profile", "fit"):
                kinds["signal"] = SIGNALS * max(1, options.kills // 20)
            for kind, numbers in kinds.items():
                began = time.monotonic()
                inside = failed = 0
                for number in numbers:
                    hit, problem = cut_off(lab, words, name, number, chance.uniform(0, whole))
                    inside += hit
                    if problem:
                        failed += 1
                        findings.append(problem)
                        print(f"  {problem}", flush=True)
                seconds = time.monotonic() - began
                print(f"{kind} {name}: {len(numbers)} tried, {inside} while it ran, {failed} failed, {seconds:.1f} s", flush=True)
                if options.log:
                    with open(options.log, "a", encoding="utf-8") as log:
                        log.write(f"{kind} {name} {len(numbers)} {inside} {failed} {seconds:.1f}\n")
    finally:
        shutil.rmtree(lab.folder, ignore_errors=True)
    sys.exit(1 if findings else 0)


main()

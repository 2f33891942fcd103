#!/usr/bin/env python3
"""Lets the n-th call of malloc, open, read, write, fsync, mmap, fork and pipe fail, for n = 1, 2, ..., in the commands that matter.

nth_failure.py MEMFATHOM INJECTOR [--most N] [--only COMMAND] [--log FILE]

Every run must end in time, by itself (no signal), with an exit code of docs/exit-codes.md other than 70 and, where that is not 0 or 1, with
a sentence on standard error; afterwards the database must pass `db check`. For calls that a command makes more often than --most
times, the first half of the tries are n = 1, 2, ..., the others are spread evenly up to the last one. "from n on" is tried as well for
malloc and write. Prints one line per command and call; --log appends "COMMAND CALL CALLS TRIED FAILED SECONDS" lines for scripts/reliability.
"""
import argparse
import collections
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

CALLS = ["open", "read", "write", "fsync", "mmap", "fork", "pipe", "malloc"]
JOB = {"model": {"preset": "gpt2"}, "training": {"batch_size": 2, "sequence_length": 32}, "target": {"gpu": "t4"}}
SHOWN = 40  # of the failures of a command and call
PATIENCE = 120  # seconds, for a run of a fraction of one on a busy machine


class Command:
    """`silent`: its reader knows that it failed from the code alone. `repeatable`: two runs print the same."""

    def __init__(self, name, words, writes=False, stdin="empty", silent=False, repeatable=True):
        self.name, self.words, self.writes, self.stdin, self.silent, self.repeatable = name, words, writes, stdin, silent, repeatable


def commands():
    return [
        Command("estimate", ["estimate", "job.json", "--format", "json"]),
        Command("batch", ["estimate", "--batch", "jobs.jsonl"]),
        Command("report", ["report", "estimate", "job.json", "--output", "report.html"]),
        Command("merge", ["db", "merge", "other.db"], writes=True),
        Command("fit", ["fit", "--device", "virtual:blue"], writes=True, repeatable=False),
        Command("calibrate", ["calibrate", "--device", "virtual:blue", "--plan", "quick"], writes=True, repeatable=False),
        Command("probe", ["__probe"], stdin="request.json", repeatable=False),  # it tells times
    ]


class Bench:
    """A folder with the files of all commands, fresh for every run."""

    def __init__(self, program, injector, folder=None):
        self.program, self.injector = program, injector
        self.folder = pathlib.Path(folder or tempfile.mkdtemp(prefix="memfathom-faults-"))
        self.model = self.folder / "model"
        self.model.mkdir()
        (self.model / "empty").touch()
        (self.model / "job.json").write_text(json.dumps(JOB))
        (self.model / "jobs.jsonl").write_text("".join(json.dumps(JOB) + "\n" for _ in range(3)))
        self.record_request()
        self.prepare("other.db", ["calibrate", "--device", "virtual:red", "--plan", "quick"])
        self.prepare("fit.db", ["calibrate", "--device", "virtual:blue", "--plan", "quick"])

    def prepare(self, database, words):
        subprocess.run([self.program, "--db", self.model / database, *words], check=True, capture_output=True,
                       env=self.environment(), timeout=PATIENCE * 5)

    def record_request(self):
        """What `profile` asks its probe for one workload."""
        probe, request = self.folder / "probe", self.model / "request.json"
        probe.write_text(f"#!/bin/sh\ncat > {request}\nexec {self.program} __probe < {request}\n")
        probe.chmod(0o755)
        subprocess.run([self.program, "--db", self.folder / "probe.db", "profile", "--device", "virtual:blue", "--filter",
                        "mlp/w256-d8/fp32/256MiB"], check=True, capture_output=True, timeout=PATIENCE,
                       env=self.environment(MEMFATHOM_PROBE=str(probe)))

    @staticmethod
    def environment(**more):
        kept = {key: value for key, value in os.environ.items() if not key.startswith("MEMFATHOM_")}
        return {**kept, "MEMFATHOM_NVML": "/nonexistent", **more}

    def lay_out(self, command):
        work = self.folder / "work"
        shutil.rmtree(work, ignore_errors=True)
        shutil.copytree(self.model, work)
        if command.name == "fit":
            shutil.move(work / "fit.db", work / "test.db")
        return work

    def run(self, command, fault=None, counts=None, preload=None):
        """Returns what is wrong with the run, or None."""
        work = self.lay_out(command)
        environment = self.environment(LD_PRELOAD=preload or self.injector, XDG_CACHE_HOME=str(work / "cache"))
        if fault:
            environment["MEMFATHOM_FAULT"] = fault
        if counts:
            environment["MEMFATHOM_FAULT_COUNTS"] = counts
        try:
            done = subprocess.run([self.program, "--db", "test.db", *command.words], cwd=work, env=environment, capture_output=True,
                                  stdin=subprocess.DEVNULL, timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            return f"did not end within {PATIENCE} s"
        said = done.stderr.decode(errors="replace").strip()
        if done.returncode < 0:
            return f"ended by signal {-done.returncode}: {said[-300:]}"
        if done.returncode not in (0, 1, 2, 3, 4):
            return f"exit code {done.returncode}: {said[-300:]}"
        wrote = fault is not None and fault.startswith("write")
        if done.returncode > 1 and not said and not done.stdout and not wrote:
            return f"exit code {done.returncode} without a sentence"
        if not fault and done.returncode != 0:
            return f"fails without a fault, with {done.returncode}: {said[-300:]}"
        database = work / "test.db"
        if command.writes and database.exists() and database.stat().st_size > 0:
            check = subprocess.run([self.program, "--db", database, "db", "check"], env=self.environment(), capture_output=True,
                                   timeout=PATIENCE)
            if check.returncode != 0:
                return f"damaged the database: {check.stdout.decode()[-300:]}{check.stderr.decode()[-300:]}"
        return None

    def count(self, command):
        """How often the busiest process of a run makes each call."""
        path = self.folder / "counts"
        path.unlink(missing_ok=True)
        problem = self.run(command, counts=str(path))
        if problem:
            sys.exit(f"{command.name}: {problem}")
        most = collections.Counter()
        for line in path.read_text().splitlines():
            name, number = line.split()
            most[name] = max(most[name], int(number))
        return most


def numbers(last, most):
    if last <= most:
        return list(range(1, last + 1))
    dense = most // 2
    spread = [dense + 1 + i * (last - dense - 1) // (most - dense - 1) for i in range(most - dense)]
    return list(range(1, dense + 1)) + spread


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("injector")
    parser.add_argument("--most", type=int, default=1000)
    parser.add_argument("--only", action="append")
    parser.add_argument("--calls", action="append")
    parser.add_argument("--log")
    options = parser.parse_args()
    bench = Bench(os.path.abspath(options.program), os.path.abspath(options.injector))
    findings = []
    try:
        for command in commands():
            if options.only and command.name not in options.only:
                continue
            counted = bench.count(command)
            for call in options.calls or CALLS:
                began = time.monotonic()
                failed = 0
                faults = [f"{call}:{n}" for n in numbers(counted[call], options.most)]
                if call in ("malloc", "write"):
                    faults += [f"{call}:{n}+" for n in numbers(counted[call], max(options.most // 10, 4))]
                for fault in faults:
                    problem = bench.run(command, fault)
                    if problem:
                        failed += 1
                        findings.append(f"{command.name} with {fault}: {problem}")
                        if failed <= SHOWN:
                            print(f"  {findings[-1]}", flush=True)
                seconds = time.monotonic() - began
                print(f"{command.name} {call}: {counted[call]} calls, {len(faults)} tried, {failed} failed, {seconds:.1f} s", flush=True)
                if options.log:
                    with open(options.log, "a", encoding="utf-8") as log:
                        log.write(f"{command.name} {call} {counted[call]} {len(faults)} {failed} {seconds:.1f}\n")
    finally:
        shutil.rmtree(bench.folder, ignore_errors=True)
    sys.exit(1 if findings else 0)


if __name__ == "__main__":
    main()

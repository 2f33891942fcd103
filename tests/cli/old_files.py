#!/usr/bin/env python3
"""Reads a file of every schema that was ever written, and refuses those of later ones in a sentence that says what to do.

old_files.py MEMFATHOM TESTS_DATA
"""
import gzip
import json
import os
import pathlib
import re
import sqlite3
import subprocess
import sys
import tempfile

SCHEMAS = {"calibration": 1, "bench": 1, "trace": 1}  # the latest of each
CALIBRATIONS = {1: 7, 2: 7, 3: 7}  # by schema of the database
TRACE_PEAK = 248857088  # bytes, of the job that wrote it


class Files:
    def __init__(self, program, data, folder):
        self.program, self.data, self.folder = program, data, folder
        self.tried = 0

    def run(self, *words, code=0):
        self.tried += 1
        kept = {key: value for key, value in os.environ.items() if not key.startswith("MEMFATHOM_")}
        done = subprocess.run([self.program, *map(str, words)], cwd=self.folder, capture_output=True, text=True, check=False, timeout=120,
                              env={**kept, "MEMFATHOM_NVML": "/nonexistent", "LC_ALL": "C"})
        if done.returncode != code:
            sys.exit(f"{words} exits with {done.returncode}, not {code}: {done.stdout[-300:]}{done.stderr[-300:]}")
        return done.stderr if code else done.stdout

    def refuses(self, *words):
        said = self.run(*words, code=2)
        if not re.search(r"newer memfathom", said) or said.count("\n") > 1:
            sys.exit(f"{words} does not say that a newer memfathom is needed: {said}")

    def read_database(self, dump, schema, latest):
        path = self.folder / f"schema{schema}.db"
        with sqlite3.connect(path) as database:
            database.executescript(dump)
        before = path.read_bytes()
        if self.run("--db", path, "db", "check").count("ok") != 1:
            sys.exit(f"schema {schema} is not sound")
        calibrations = json.loads(self.run("--db", path, "calibrations", "list", "--format", "json"))["calibrations"]
        if len(calibrations) != CALIBRATIONS[schema]:
            sys.exit(f"schema {schema} has {len(calibrations)} calibrations")
        if path.read_bytes() != before:
            sys.exit(f"reading changed the file of schema {schema}")
        # Upgraded by the first command that writes; then it is one of the latest schema with the same rows.
        self.run("--db", path, "observe", self.data / "old/runs-1.jsonl")
        with sqlite3.connect(path) as database:
            if database.execute("PRAGMA user_version").fetchone()[0] != latest:
                sys.exit(f"schema {schema} was not upgraded")
        again = json.loads(self.run("--db", path, "calibrations", "list", "--format", "json"))["calibrations"]
        if again != calibrations:
            sys.exit(f"the upgrade of schema {schema} changed its calibrations")

    def read_databases(self):
        dumps = {int(path.stem[1:]): path.read_text() for path in (self.data / "db").glob("v*.sql")}
        latest = max(dumps)
        if sorted(dumps) != list(range(1, latest + 1)):
            sys.exit(f"dumps of schemas {sorted(dumps)} are there; every one is wanted")
        for schema, dump in dumps.items():
            self.read_database(dump, schema, latest)
        path = self.folder / "newer.db"
        with sqlite3.connect(path) as database:
            database.executescript(dumps[latest])
            database.execute(f"PRAGMA user_version = {latest + 1}")
        before = path.read_bytes()
        for words in (["db", "check"], ["calibrations", "list"], ["observe", self.data / "old/runs-1.jsonl"],
                      ["calibrate", "--device", "virtual:plain"]):
            self.refuses("--db", path, *words)
        if path.read_bytes() != before:
            sys.exit("a database of a newer schema was changed")

    def read_others(self):
        old = self.data / "old"
        for name, latest in SCHEMAS.items():
            there = sorted(path.name.split(".")[0] for path in old.glob(f"{name}-*"))
            if there != [f"{name}-{number}" for number in range(1, latest + 1)]:
                sys.exit(f"of {name} there are {there}; every schema up to {latest} is wanted")
        self.run("--db", "import.db", "db", "import", old / "calibration-1.json")
        self.run("bench", "compare", old / "bench-1.json", old / "bench-1.json")
        (self.folder / "job.json").write_text(json.dumps({"model": {"trace": str(old / "trace-1.jsonl.gz")}, "target": {"gpu": "t4"}}))
        peak = json.loads(self.run("estimate", "job.json", "--format", "json"))["totals"]["allocated_peak_bytes"]
        if peak != TRACE_PEAK:
            sys.exit(f"the trace peaks at {peak}, not at {TRACE_PEAK}")
        for name in ("runs-1.jsonl", "runs-1.csv"):
            if "1 observations added" not in self.run("--db", name + ".db", "observe", old / name):
                sys.exit(f"{name} was not read")
        self.run("estimate", old / "job-1.json")

    def refuse_newer(self):
        old = self.data / "old"
        for name, latest in SCHEMAS.items():
            path = next(old.glob(f"{name}-{latest}.*"))
            text = (gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()).decode()
            for number in (latest + 1, 10**9):
                newer = self.folder / f"newer-{name}{pathlib.Path(path.stem).suffix or path.suffix}"
                newer.write_text(re.sub(rf"memfathom\.{name}/{latest}\b", f"memfathom.{name}/{number}", text))
                if name == "calibration":
                    self.refuses("--db", "none.db", "db", "import", newer)
                elif name == "bench":
                    self.refuses("bench", "compare", newer, newer)
                else:
                    (self.folder / "newer.json").write_text(json.dumps({"model": {"trace": str(newer)}}))
                    self.refuses("estimate", "newer.json")


def main():
    with tempfile.TemporaryDirectory(prefix="memfathom-old-") as folder:
        files = Files(os.path.abspath(sys.argv[1]), pathlib.Path(sys.argv[2]).resolve(), pathlib.Path(folder))
        files.read_databases()
        files.read_others()
        files.refuse_newer()
        print(f"{files.tried} commands over old and newer files did what they should")


main()

#!/usr/bin/env python3
"""Runs the bench suite again and again on a device on which nothing changed: no run may differ from the first.

false_alarms.py MEMFATHOM [--runs 100] [--device virtual:plain] [--log FILE]

A virtual GPU scatters as its seed says, which is another one for every run; a last run with a planted change must be noticed. --log
appends "DEVICE RUNS FALSE_ALARMS SECONDS" for scripts/reliability.
"""
import argparse
import os
import pathlib
import subprocess
import sys
import tempfile
import time


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--device", default="virtual:plain")
    parser.add_argument("--filter", default="mlp|conv")
    parser.add_argument("--log")
    options = parser.parse_args()
    program = os.path.abspath(options.program)
    began = time.monotonic()
    kept = {name: value for name, value in os.environ.items() if not name.startswith("MEMFATHOM_")}
    is_virtual = options.device.startswith("virtual:")
    with tempfile.TemporaryDirectory(prefix="memfathom-alarms-") as folder:
        def bench(*words, codes):
            done = subprocess.run([program, "bench", *words], cwd=folder, capture_output=True, text=True, check=False, timeout=600,
                                  env={**kept, "MEMFATHOM_NVML": "/nonexistent"})
            if done.returncode not in codes:
                sys.exit(f"bench {' '.join(words)} exits with {done.returncode}: {done.stdout[-300:]}{done.stderr[-300:]}")
            return done

        def run(name, *more):
            pathlib.Path(folder, name).unlink(missing_ok=True)
            bench("run", "--device", options.device, "--scale", "tiny", "--filter", options.filter, "--out", name, *more, codes=(0,))

        def seed(number):
            return ("--seed", str(number)) if is_virtual else ()

        run("base.json", *seed(0))
        alarms = 0
        for number in range(1, options.runs + 1):
            run("new.json", *seed(number))
            done = bench("compare", "base.json", "new.json", "--strict", codes=(0, 1, 3))
            if done.returncode != 0:
                alarms += 1
                print(f"  run {number}: {done.stdout[:400]}", flush=True)
        if is_virtual:
            run("changed.json", "--plant", "context=300MiB", *seed(options.runs + 1))
            bench("compare", "base.json", "changed.json", codes=(1,))
    seconds = time.monotonic() - began
    print(f"{options.device}: {options.runs} runs, {alarms} false alarms, {seconds:.1f} s")
    if options.log:
        with open(options.log, "a", encoding="utf-8") as log:
            log.write(f"{options.device} {options.runs} {alarms} {seconds:.1f}\n")
    sys.exit(1 if alarms else 0)


main()

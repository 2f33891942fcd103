#!/usr/bin/env python3
"""Lets every single call of malloc, open, read, write, fsync, mmap, fork and pipe of a command fail, up to its last one.

every_failure.py MEMFATHOM INJECTOR [--only COMMAND] [--calls CALL] [--leaks LIBLSAN] [--from N] [--until SECONDS] [--log FILE]

Each command runs once per kind of call. At every call it forks (walk.h); in the copy the call fails. Calls beside a child process are
tried in a run of their own. A copy must end in time, by itself,
with an exit code of docs/exit-codes.md other than 70, where that is above 1 with a sentence; where it is the code of the run without
a failure the answer must be that one's too, or a sentence must say what is missing. No process stays behind and the database passes
`db check`. "write+" and, where --calls names it, "malloc+" let all calls from the n-th on fail. With --leaks the calls are those with a call stack of their own,
under LeakSanitizer. Needs root (mount namespaces). --log appends "COMMAND CALL CALLS TRIED FAILED SECONDS" for scripts/reliability.
"""
import argparse
import hashlib
import os
import pathlib
import shutil
import socket
import subprocess
import sys
import tempfile
import time

from nth_failure import Bench, CALLS, SHOWN, commands

PATIENCE = 120
SHARED = -2
LEAKED = 23  # LeakSanitizer's exit code


class Walker:
    def __init__(self, program, injector, leaks):
        self.injector, self.leaks = injector, leaks
        # In memory: a copy of the folder is made for every call.
        self.bench = Bench(program, injector, tempfile.mkdtemp(prefix="memfathom-faults-", dir="/dev/shm"))
        self.work = self.bench.folder / "work"
        self.copy = self.bench.folder / "work.copy"
        self.sound = set()

    def preload(self):
        return f"{self.injector} {self.leaks}" if self.leaks else str(self.injector)

    def start(self, command, control, **more):
        self.bench.lay_out(command)
        environment = self.bench.environment(LD_PRELOAD=self.preload(), XDG_CACHE_HOME=str(self.work / "cache"), **more)
        if self.leaks:
            environment["LSAN_OPTIONS"] = f"exitcode={LEAKED}"
        with open(self.work / "stdout", "wb") as out, open(self.work / "stderr", "wb") as err, open(self.work / command.stdin, "rb") as stdin:
            return subprocess.Popen([self.bench.program, "--db", "test.db", *command.words], cwd=self.work, env=environment, stdin=stdin,
                                    stdout=out, stderr=err, pass_fds=[control] if control is not None else [], preexec_fn=on_one_core)

    def reference(self, command):
        """The exit code, answer and remarks of a run without a failure."""
        code = self.start(command, None).wait(timeout=PATIENCE)
        if code not in (0, 1):
            sys.exit(f"{command.name} exits with {code} without a failure: {(self.work / 'stderr').read_text()[-400:]}")
        return code, (self.work / "stdout").read_bytes(), (self.work / "stderr").read_bytes()

    def problem(self, command, status, left, reference):
        if status == -1:
            return f"did not end within {PATIENCE} s"
        out, err = ((self.copy / name).read_bytes() for name in ("stdout", "stderr"))
        said = err.decode(errors="replace").strip()
        if os.WIFSIGNALED(status):
            return f"ended by signal {os.WTERMSIG(status)}: {said[-300:]}"
        code = os.WEXITSTATUS(status)
        if code == LEAKED:
            return f"leaks: {said[-1500:]}"
        if code not in (0, 1, 2, 3, 4):
            return f"exit code {code}: {said[-300:]}"
        if left:
            return f"exit code {code}, and processes are left"
        if code > 1 and not said and not out and not command.silent:
            return f"exit code {code} without a sentence"
        if code <= 1 and err == reference[2] and command.repeatable and (code, out) != reference[:2]:
            return f"exit code {code} with another answer and no word about it: {out[-300:]!r}"
        return self.unsound(command)

    def unsound(self, command):
        database = self.copy / "test.db"
        if not command.writes or not database.exists() or database.stat().st_size == 0:
            return None
        state = hashlib.sha256(database.read_bytes())
        journal = self.copy / "test.db-journal"
        if journal.exists():
            state.update(b"journal" + journal.read_bytes())
        if state.digest() in self.sound:
            return None
        check = subprocess.run([self.bench.program, "--db", database, "db", "check"], env=self.bench.environment(), capture_output=True,
                               timeout=PATIENCE)
        if check.returncode != 0:
            return f"damaged the database: {check.stdout.decode()[-300:]}{check.stderr.decode()[-300:]}"
        self.sound.add(state.digest())
        return None

    def walk(self, command, call, begin, seconds):
        """Yields (n, problem) for every n."""
        reference = self.reference(command)
        here, there = socket.socketpair()
        process = self.start(command, there.fileno(), MEMFATHOM_FAULT_WALK=call + ("/stacks" if self.leaks else ""),
                             MEMFATHOM_FAULT_FOLDER=str(self.work), MEMFATHOM_FAULT_CONTROL=str(there.fileno()),
                             MEMFATHOM_FAULT_PATIENCE=str(PATIENCE), MEMFATHOM_FAULT_FROM=str(begin))
        there.close()
        ends = time.monotonic() + seconds
        alone = []
        with here.makefile("r") as lines:
            for line in lines:
                n, status, left = map(int, line.split())
                if status == SHARED:
                    alone.append(n)
                else:
                    yield n, self.problem(command, status, left, reference)
                if time.monotonic() > ends:
                    process.kill()
                    process.wait()
                    yield n, "stopped here: no time left"
                    return
                here.send(b"x")
        code = process.wait()
        if code != reference[0]:
            yield 0, f"the run without a failure exits with {code}: {(self.work / 'stderr').read_text()[-300:]}"
        kind = call.rstrip("+")
        for n in alone:
            yield n, self.bench.run(command, f"{kind}:{n}{call[len(kind):]}", preload=self.preload())


def on_one_core():
    # A copy has the thread that forked and no other: so that there is one, and so that calls have a fixed order.
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("injector")
    parser.add_argument("--only", action="append")
    parser.add_argument("--calls", action="append")
    parser.add_argument("--leaks")
    parser.add_argument("--from", type=int, default=1, dest="begin")
    parser.add_argument("--until", type=float, default=1e9)
    parser.add_argument("--log")
    options = parser.parse_args()
    walker = Walker(os.path.abspath(options.program), os.path.abspath(options.injector), options.leaks)
    failures = 0
    try:
        for command in commands():
            if options.only and command.name not in options.only:
                continue
            for call in options.calls or (["malloc"] if options.leaks else CALLS + ["write+"]):
                began = time.monotonic()
                last = tried = failed = 0
                for n, problem in walker.walk(command, call, options.begin, options.until):
                    last = max(last, n)
                    tried += 1
                    if problem:
                        failed += 1
                        if failed <= SHOWN:
                            print(f"  {command.name} with {call}:{n}: {problem}", flush=True)
                failures += failed
                seconds = time.monotonic() - began
                print(f"{command.name} {call}: {last} calls, {tried} tried, {failed} failed, {seconds:.1f} s", flush=True)
                if options.log:
                    name = f"{command.name}-leaks" if options.leaks else command.name
                    pathlib.Path(options.log).open("a", encoding="utf-8").write(f"{name} {call} {last} {tried} {failed} {seconds:.1f}\n")
    finally:
        shutil.rmtree(walker.bench.folder, ignore_errors=True)
    sys.exit(1 if failures else 0)


main()

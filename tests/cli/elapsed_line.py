#!/usr/bin/env python3
"""Long work says on a terminal for how long it has been going on, and in a pipe nothing: elapsed_line.py MEMFATHOM

The job is the longest single one that is known: a million tokens by the largest preset with experts. It is ended once it has said so.
"""
import json
import os
import pty
import signal
import subprocess
import sys
import tempfile
import time

JOB = {"model": {"preset": "qwen3-235b-a22b"}, "training": {"mode": "generate", "sequence_length": 2048, "new_tokens": 1048576, "precision": "bf16"},
       "target": {"gpu": "h100-80gb"}}
PATIENCE = 240


def main():
    program = os.path.abspath(sys.argv[1])
    with tempfile.TemporaryDirectory() as folder:
        with open(folder + "/job.json", "w", encoding="utf-8") as file:
            json.dump(JOB, file)
        kept = {**os.environ, "MEMFATHOM_NVML": "/nonexistent", "HOME": folder, "TERM": "xterm"}
        for words in (["estimate", "job.json"], ["check", "job.json"]):
            terminal, inside = pty.openpty()
            process = subprocess.Popen([program, *words], cwd=folder, env=kept, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=inside)
            os.close(inside)
            written = b""
            ends = time.monotonic() + PATIENCE
            while b"\r\x1b[Kestimating: " not in written and time.monotonic() < ends:
                try:
                    written += os.read(terminal, 4096)
                except OSError:  # the program has ended
                    break
            process.send_signal(signal.SIGKILL)
            process.wait()
            os.close(terminal)
            if b"\r\x1b[Kestimating: " not in written:
                sys.exit(f"{words} shows no progress on a terminal: {written!r}")
        process = subprocess.Popen([program, "estimate", "job.json"], cwd=folder, env=kept, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                   stderr=subprocess.PIPE)
        time.sleep(4)
        process.kill()
        said = process.communicate()[1]
        if b"estimating" in said:
            sys.exit(f"progress in a pipe: {said!r}")


main()

"""Estimates every line of a file on a Ray cluster: python ray_batch.py jobs.jsonl answers.jsonl 16 a100-80gb

Each task runs `memfathom estimate --batch --slim --shard K/N`; the parts are joined in order. Needs `pip install ray`, memfathom in
PATH on every node (or MEMFATHOM), and a file system that they share.
"""
import os
import subprocess
import sys

import ray


@ray.remote(num_cpus=1, max_retries=3)
def estimate(program, jobs, gpu, part, parts):
    words = [program, "estimate", "--batch", jobs, "--slim", "--gpu", gpu, "--shard", f"{part}/{parts}"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode not in (0, 2) or done.stderr.startswith("memfathom:"):  # 2 alone: a line that says itself why
        raise RuntimeError(done.stderr)
    return done.stdout


def main(jobs, answers, parts, gpu):
    ray.init(ignore_reinit_error=True)
    program = os.environ.get("MEMFATHOM", "memfathom")
    tasks = [estimate.remote(program, os.path.abspath(jobs), gpu, part, int(parts)) for part in range(int(parts))]
    with open(answers, "w", encoding="utf-8") as out:
        for task in tasks:  # in order: a finished part waits for those before it
            out.write(ray.get(task))


if __name__ == "__main__":
    main(*sys.argv[1:])

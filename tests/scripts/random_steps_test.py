"""scripts/compare-random-steps draws the same jobs again, and the program answers all of them. Recording needs PyTorch and is not tested here."""
import json
import subprocess
import sys

SCRIPT, PROGRAM = sys.argv[1:]


def drawn():
    done = subprocess.run([sys.executable, SCRIPT, "--jobs", "--seeds", "0-249"], capture_output=True, text=True, check=True)
    return [line.partition(" ")[2] for line in done.stdout.splitlines()]


jobs = drawn()
assert len(jobs) == 250 and jobs == drawn(), "a seed is not always the same job"
answers = subprocess.run([PROGRAM, "estimate", "--batch", "-", "--slim"], input="\n".join(jobs), capture_output=True, text=True).stdout.splitlines()
assert len(answers) == len(jobs), f"{len(answers)} answers to {len(jobs)} jobs"
refused = [(answer["error"], job) for answer, job in zip(map(json.loads, answers), jobs) if "error" in answer]
for error, job in refused:
    print(error, job, sep="\n")
sys.exit(bool(refused))

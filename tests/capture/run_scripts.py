"""Records the scripts of scripts/, each in a process of its own, and says how many were recorded to their second step.

    run_scripts.py [--with-job] [name ...]

A script whose first line is `# job: {...}` is also compared with the program's own builder of that job: the allocated
peaks must agree within 0.5 %. `# world: N` is the number of processes it expects, `# arguments: ...` its command line. Needs MEMFATHOM_PROGRAM; the libraries that
a script imports must be installed, and it is left out where one is not.
"""
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "scripts")
PROGRAM = os.environ["MEMFATHOM_PROGRAM"]
TOLERANCE = 0.005
GPU = "a100-80gb"


def directive(text, name):
    found = re.search(rf"^# {name}: (.*)$", text, re.MULTILINE)
    return found[1] if found else None


def estimate(folder, job):
    path = os.path.join(folder, "job.json")
    with open(path, "w") as file:
        json.dump(job, file)
    done = subprocess.run([PROGRAM, "--db", os.path.join(folder, "db"), "estimate", path, "--gpu", GPU, "--format", "json"], capture_output=True, text=True)
    if not done.stdout:
        raise SystemExit(done.stderr)
    return json.loads(done.stdout)


def record(name, text, folder):
    """The answer, or None with a reason."""
    command = [PROGRAM, "--db", os.path.join(folder, "db"), "capture", "--python", sys.executable, "--gpu", GPU, "--format", "json", "--world", directive(text, "world") or "1",
               os.path.join(FOLDER, name + ".py"), *shlex.split(directive(text, "arguments") or "")]
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder)
    missing = re.search(r"ModuleNotFoundError: No module named '([^']+)'", done.stderr)
    if missing:
        return None, f"left out: {missing[1]} is not installed"
    if done.returncode not in (0, 1):
        return None, "failed: " + (done.stderr.strip().splitlines() or [""])[-2][:200]
    return json.loads(done.stdout), ""


def main(words):
    only_jobs, wanted = "--with-job" in words, [w for w in words if not w.startswith("--")]
    names = sorted(f[:-3] for f in os.listdir(FOLDER) if f.endswith(".py") and f != "toy.py")
    recorded = failed = 0
    for name in names:
        text = open(os.path.join(FOLDER, name + ".py")).read()
        job = directive(text, "job")
        if wanted and name not in wanted or only_jobs and job is None:
            continue
        with tempfile.TemporaryDirectory() as folder:
            answer, reason = record(name, text, folder)
            if answer is None:
                failed += reason.startswith("failed")
                print(f"{name}: {reason}", flush=True)
                continue
            recorded += 1
            peak = answer["totals"]["allocated_peak_bytes"]
            line = f"{name}: {peak / 2**20:.1f} MiB allocated"
            if job is not None:
                job = json.loads(job)
                job["target"] = {"stack": {"version": "2.15"}}
                built = estimate(folder, job)["totals"]["allocated_peak_bytes"]
                deviation = peak / built - 1
                failed += abs(deviation) > TOLERANCE
                line += f", the builder's {built / 2**20:.1f} MiB: {100 * deviation:+.2f} %"
            print(line, flush=True)
    print(f"{recorded} recorded, {failed} failed")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

#!/usr/bin/env python3
"""Turns finished Slurm jobs into observations, for a daily cron job:

    sacct -a -n -P --noconvert -S yesterday -E now -s COMPLETED -o JobIDRaw,NTasks,AllocTRES,TRESUsageInMax,Comment |
        observe-finished-jobs.py > runs.jsonl && memfathom observe runs.jsonl --source "our cluster"

Without -E, sacct takes -S for the end as well. Slurm must account GPU memory and keep comments (Slurm 23.02 or newer, slurm.conf):

    AccountingStorageTRES=gres/gpu,gres/gpu:a100,gres/gpu:h100,gres/gpumem     each type by name, else the records do not name it
    AccountingStoreFlags=job_comment
    JobAcctGatherFrequency=5                                                   a peak between two readings is missed
    AutoDetect=nvml                                                            in gres.conf: it is NVML that reads the memory

A job is used if its comment has `memfathom=JOB.yaml` or `memfathom={...}`. Slurm adds up the GPUs of a task, so only steps with one GPU
per task count (of `torchrun --nproc_per_node 8` in one task nothing is known); of several steps the largest. What is left out is
counted on standard error.
"""

import json
import re
import sys

UNITS = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}


def bytes_in(tres):
    found = re.search(r"gres/gpumem=(\d+(?:\.\d+)?)([KMGT]?)(?:,|$)", tres)
    return int(float(found[1]) * UNITS[found[2]]) if found else 0


def has_one_gpu_per_task(tasks, tres):
    found = re.search(r"gres/gpu=(\d+)", tres)
    return bool(found) and tasks.isdigit() and int(found[1]) == int(tasks)


def description_in(comment):
    """A path, or a job; None without one."""
    found = re.search(r"memfathom=(\{.*|[^\s;]+)", comment)
    if not found or not found[1].startswith("{"):
        return found and found[1]
    try:
        return json.loads(found[1])
    except ValueError:
        return None


def read_jobs(lines):
    jobs = {}
    for line in lines:
        fields = line.rstrip("\n").split("|", 4)  # a comment may hold the separator
        if len(fields) != 5 or not re.fullmatch(r"\d+(\.\S+)?", fields[0]):
            continue
        step, tasks, allocated, used, comment = fields
        job = jobs.setdefault(step.split(".")[0], {"comment": "", "gpu": "", "bytes": 0, "is_shared": False})
        job["comment"] = job["comment"] or comment
        kind = re.search(r"gres/gpu:([\w.-]+)=", allocated)
        job["gpu"] = job["gpu"] or (kind[1].replace("_", "-") if kind else "")
        if bytes_in(used) and not has_one_gpu_per_task(tasks, allocated):
            job["is_shared"] = True
        elif bytes_in(used):
            job["bytes"] = max(job["bytes"], bytes_in(used))
    return jobs


def main():
    jobs = read_jobs(sys.stdin)
    written = 0
    for number, job in jobs.items():
        description = description_in(job["comment"])
        if not description or not job["bytes"] or job["is_shared"]:
            continue
        row = {"job": description, "metric": "device", "bytes": job["bytes"], "note": f"Slurm job {number}"}
        if job["gpu"]:
            row["gpu"] = job["gpu"]
        print(json.dumps(row))
        written += 1
    shared = sum(job["is_shared"] for job in jobs.values())
    print(f"{written} of {len(jobs)} jobs have a description and an accounted GPU memory"
          + (f"; {shared} left out, whose tasks have several GPUs" if shared else ""), file=sys.stderr)


if __name__ == "__main__":
    main()

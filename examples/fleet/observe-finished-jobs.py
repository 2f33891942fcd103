#!/usr/bin/env python3
"""Turns finished Slurm jobs into observations, for a daily cron job:

    sacct -a -n -P -S yesterday -s COMPLETED -o JobIDRaw,Comment,ReqTRES,TRESUsageInMax |
        observe-finished-jobs.py > runs.jsonl && memfathom observe runs.jsonl --source "our cluster"

A job is used if its comment has `memfathom=JOB.yaml` and Slurm accounted its GPU memory (AccountingStorageTRES=gres/gpumem with
AutoDetect=nvml). The largest step counts, since a peak is what must fit. What is left out is counted on standard error.
"""

import json
import re
import sys

UNITS = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}


def bytes_in(tres):
    found = re.search(r"gres/gpumem=(\d+(?:\.\d+)?)([KMGT]?)", tres)
    return int(float(found[1]) * UNITS[found[2]]) if found else 0


def main():
    jobs = {}
    for line in sys.stdin:
        fields = line.rstrip("\n").split("|")
        if len(fields) != 4:
            continue
        step, comment, requested, used = fields
        job = jobs.setdefault(step.split(".")[0], {"comment": "", "gpu": "", "bytes": 0})
        job["comment"] = job["comment"] or comment
        kind = re.search(r"gres/gpu:([\w.-]+)=", requested)
        job["gpu"] = job["gpu"] or (kind[1].replace("_", "-") if kind else "")
        job["bytes"] = max(job["bytes"], bytes_in(used))
    written = 0
    for number, job in jobs.items():
        file = re.search(r"memfathom=([^\s;{]+)", job["comment"])
        if not file or not job["bytes"]:
            continue
        row = {"job": file[1], "metric": "device", "bytes": job["bytes"], "note": f"Slurm job {number}"}
        if job["gpu"]:
            row["gpu"] = job["gpu"]
        print(json.dumps(row))
        written += 1
    print(f"{written} of {len(jobs)} jobs have a description and an accounted GPU memory", file=sys.stderr)


if __name__ == "__main__":
    main()

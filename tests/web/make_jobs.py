#!/usr/bin/env python3
"""make_jobs.py MEMFATHOM COUNT: so many different jobs, JSON lines, always the same ones: every preset in turn, with settings drawn
from a fixed seed. Some contradict their model on purpose: errors must be the same everywhere too."""
import json
import random
import subprocess
import sys


def listed(program, what, key):
    return [row["name"] for row in json.loads(subprocess.check_output([program, what, "--format", "json"]))[key]]


def main():
    program, count = sys.argv[1], int(sys.argv[2])
    models, gpus = listed(program, "models", "models"), listed(program, "gpus", "gpus")
    draw = random.Random(27)
    draw.shuffle(models)
    for number in range(count):
        training = {"batch_size": draw.choice([1, 1, 2, 3, 4, 8, 16]),
                    "precision": draw.choice(["fp32", "bf16", "fp16", "amp-bf16", "amp-fp16"]),
                    "optimizer": draw.choice(["sgd", "sgd-momentum", "adam", "adamw", "adamw-8bit", "adafactor", "lion"]),
                    "gradient_checkpointing": draw.choice(["none", "none", "full", "selective"]),
                    "gradient_accumulation_steps": draw.choice([1, 1, 1, 4])}
        if draw.random() < 0.6:
            training["sequence_length"] = draw.choice([128, 500, 512, 1024, 2048])
        if draw.random() < 0.4:
            training["attention"] = draw.choice(["eager", "flash", "sdpa", "math", "efficient"])
        if draw.random() < 0.4:
            training["lora"] = {"rank": draw.choice([4, 8, 16, 64])}
            if draw.random() < 0.5:
                training["quantization"] = draw.choice(["nf4", "int8", "nf4-double"])
        if draw.random() < 0.15:
            training = {"mode": "inference", "batch_size": training["batch_size"], "precision": draw.choice(["fp16", "bf16", "fp32"])}
        job = {"id": f"job-{number}", "model": {"preset": models[number % len(models)]}, "training": training}
        if draw.random() < 0.25 and training.get("mode") is None:
            job["parallel"] = draw.choice([{"num_gpus": 2}, {"num_gpus": 8, "zero_stage": 2}, {"num_gpus": 4, "zero_stage": 3},
                                           {"num_gpus": 8, "fsdp": "full"}, {"num_gpus": 2, "zero_stage": 3, "offload": {"optimizer": "cpu"}}])
        if draw.random() < 0.8:
            job["target"] = {"gpu": draw.choice(gpus)}
        elif draw.random() < 0.5:
            job["target"] = {"memory": draw.choice(["12GiB", "24GB", "80GiB"])}
        if draw.random() < 0.1:
            job["allocator"] = {"options": "expandable_segments:True"}
        print(json.dumps(job))


main()

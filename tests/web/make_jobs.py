#!/usr/bin/env python3
"""make_jobs.py MEMFATHOM COUNT: so many different jobs, JSON lines, always the same ones of one program: every preset and every
family of tests/data/families in turn, with settings drawn from a fixed seed.

A setting that does not go with a model is refused (a text model without a length, LoRA on convolutions). So three jobs are drawn for
each place, and the first that the program answers is taken; one in twenty of the refused ones stays, since errors must be the same
everywhere too. What came out is told on standard error."""
import collections
import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile

FAMILIES = pathlib.Path(__file__).resolve().parents[1] / "data/families"
DRAWN = 3
LARGE = 10 << 30  # parameters: beyond them a job takes seconds where each new token is an estimate


def listed(program, what, key):
    return json.loads(subprocess.check_output([program, what, "--format", "json"]))[key]


def models_of(program):
    """[(name, model, input, is large)]: presets, which say nothing of their input, and small configurations of the families, which do."""
    found = [(row["name"], {"preset": row["name"]}, None, (row["parameters"] or 0) > LARGE) for row in listed(program, "models", "models")]
    for file in sorted(FAMILIES.glob("*.json")):
        recorded = json.loads(file.read_text(encoding="utf-8"))
        found.append((f"family {file.stem}", {"config": recorded["config"]}, recorded["input"], False))
    return found


def input_keys(draw, given, number):
    """The keys of a sample: a length for texts, a size for images, or nothing where the model knows."""
    if given and "tokens" in given:
        return {"sequence_length": draw.choice([given["tokens"], given["tokens"] // 2])}
    if given:
        return {}
    return [{"sequence_length": draw.choice([64, 128, 500, 512, 1024, 2048])}, {"sequence_length": draw.choice([64, 77, 128])},
            {"image_size": draw.choice([224, 256])} if draw.random() < 0.4 else {}][number % DRAWN]


def training_of(draw, kind, sample):
    training = {"batch_size": draw.choice([1, 1, 2, 3, 4, 8, 16]), "precision": draw.choice(["fp32", "bf16", "fp16", "amp-bf16", "amp-fp16"]), **sample}
    if kind in ("inference", "generate"):
        training.update(mode=kind, precision=draw.choice(["fp16", "bf16", "fp32"]))
        if kind == "generate":
            training["new_tokens"] = draw.choice([16, 128, 300])
        if draw.random() < 0.3:
            training["quantization"] = draw.choice(["nf4", "int8", "gptq", "awq"])
        return training
    training.update(optimizer=draw.choice(["sgd", "sgd-momentum", "adam", "adamw", "adamw-8bit", "adafactor", "lion", "rmsprop"]),
                    gradient_checkpointing=draw.choice(["none", "none", "full", "selective"]), gradient_accumulation_steps=draw.choice([1, 1, 1, 4]))
    if draw.random() < 0.3:
        training["attention"] = draw.choice(["eager", "flash", "sdpa", "math", "efficient"])
    if draw.random() < 0.15:
        training["fused_loss"] = True
    if draw.random() < 0.1:
        training["lengths"] = "fixed"
    if kind in ("lora", "qlora"):
        training["lora"] = {"rank": draw.choice([4, 8, 16, 64])}
        if draw.random() < 0.5:
            training["lora"]["targets"] = "all-linear"
    if kind == "qlora":
        training["quantization"] = draw.choice(["nf4", "int8", "nf4-double"])
    if kind == "dpo":
        training["preference"] = {"method": "dpo"}
    return training


PARALLEL = [{"num_gpus": 2}, {"num_gpus": 8, "zero_stage": 1}, {"num_gpus": 8, "zero_stage": 2}, {"num_gpus": 4, "zero_stage": 3}, {"num_gpus": 8, "fsdp": "full"},
            {"num_gpus": 16, "gpus_per_node": 8, "fsdp": "hybrid"}, {"num_gpus": 2, "zero_stage": 3, "offload": {"optimizer": "cpu", "parameters": "cpu"}},
            {"num_gpus": 8, "tensor": 2}, {"num_gpus": 8, "pipeline": 2}]
KINDS = ["full", "full", "full", "lora", "qlora", "inference", "generate", "dpo"]


def job_of(draw, model, given, is_large, gpus, attempt):
    kind = draw.choice(KINDS[:5] if is_large else KINDS) if attempt == 0 else draw.choice(["full", "lora", "inference"]) if attempt == 1 else "full"
    job = {"model": model, "training": training_of(draw, kind, input_keys(draw, given, attempt))}
    if kind not in ("inference", "generate") and draw.random() < 0.3:
        job["parallel"] = draw.choice(PARALLEL)
    if draw.random() < 0.8:
        job["target"] = {"gpu": draw.choice(gpus)}
    elif draw.random() < 0.5:
        job["target"] = {"memory": draw.choice(["12GiB", "24GB", "80GiB"])}
    if draw.random() < 0.1:
        job["allocator"] = {"options": "expandable_segments:True"}
    return kind, job


def answers(program, jobs):
    """Whether each is answered, by the program without a database and without cuDNN, as in a page."""
    with tempfile.TemporaryDirectory(prefix="memfathom-jobs-") as home:
        lines = "\n".join(json.dumps(job) for job in jobs) + "\n"
        ran = subprocess.run([program, "estimate", "--batch", "-", "--format", "json"], input=lines, capture_output=True, text=True, check=False, cwd=home,
                             env={"PATH": os.environ["PATH"], "HOME": home, "MEMFATHOM_CUDNN_PLANNER": "/nonexistent"})
    printed = ran.stdout.splitlines()
    if len(printed) != len(jobs):
        sys.exit(f"make_jobs.py: {len(jobs)} jobs, {len(printed)} answers, exit {ran.returncode}: {ran.stderr[-500:]}")
    return ['"memfathom.estimate/1"' in line for line in printed]


def main():
    program, count = sys.argv[1], int(sys.argv[2])
    draw = random.Random(27)
    models, gpus = models_of(program), [row["name"] for row in listed(program, "gpus", "gpus")]
    draw.shuffle(models)
    drawn = [[job_of(draw, *models[place % len(models)][1:], gpus, attempt) for attempt in range(DRAWN)] for place in range(count)]
    keeps = [draw.random() < 0.05 for _ in range(count)]  # whatever is said to its first job
    chosen, answered = [0] * count, [False] * count
    for attempt in range(DRAWN):
        open_places = [place for place in range(count) if not answered[place] and not (attempt > 0 and keeps[place])]
        for place, is_answered in zip(open_places, answers(program, [drawn[place][attempt][1] for place in open_places])):
            answered[place] = is_answered
            chosen[place] = attempt if is_answered else 0
    kinds, families = collections.Counter(), set()
    for place in range(count):
        kind, job = drawn[place][chosen[place]]
        if answered[place]:
            kinds[kind + (" parallel" if "parallel" in job else "")] += 1
            families.add(models[place % len(models)][0])
        print(json.dumps({"id": f"job-{place}", **job}))
    refused = count - sum(answered)
    told = ", ".join(f"{n} {kind}" for kind, n in sorted(kinds.items()))
    missing = sorted({name for name, *_ in models} - families) if count >= len(models) else []
    print(f"{count} jobs, {refused} refused, {len(families)} of {len(models)} models answered{' (never: ' + ', '.join(missing) + ')' if missing else ''}: {told}", file=sys.stderr)


main()

#!/usr/bin/env python3
"""Records training steps of model families with PyTorch and transformers, and prints memfathom's deviation from them.

    record-families.py record [family ...]    # writes the peaks into tests/data/families/
    record-families.py compare [family ...]   # the table of docs/families.md; needs MEMFATHOM_PROGRAM or build/release/bin

tests/data/families/NAME.json holds a family's configuration, its input and the figures; docs/families.md has the table. A step is recorded by memfathom.torch:
the library's own code on a pretended A100 with fake tensors, so no GPU and no weights are needed, but torch, transformers and
peft are (the file names the versions). Cases: fp32, bf16, bf16 with gradient checkpointing, bf16 with LoRA of rank 8 and fp32
adapters on the file's targets; "cases" names fewer where the library has not all. AdamW, second iteration, highest live bytes of each phase in blocks of 512 B.
"""
import argparse
import copy
import gc
import json
import os
import subprocess
import sys
import warnings

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
FOLDER = os.path.join(ROOT, "tests", "data", "families")
sys.path.insert(0, os.path.join(ROOT, "python"))
os.environ.update(HF_HUB_OFFLINE="1", TRANSFORMERS_VERBOSITY="error")
warnings.simplefilter("ignore")

# what: precision, gradient checkpointing, LoRA
CASES = {"fp32": ("fp32", False, False), "bf16": ("bf16", False, False), "checkpointing": ("bf16", True, False), "lora": ("bf16", False, True)}
PHASES = ("forward", "backward", "step")


def make_model(family, case):
    import torch
    import transformers

    precision, checkpoints, lora = CASES[case]
    config = copy.deepcopy(family["config"])
    architecture = getattr(transformers, config["architectures"][0])
    model_type = config.pop("model_type")
    config = transformers.AutoConfig.for_model(family.get("recorded_as", model_type), **config)
    for part in (config, *(getattr(config, name) for name in config.sub_configs)):
        if hasattr(part, "use_cache"):
            part.use_cache = False
    model = architecture._from_config(config, dtype={"fp32": torch.float32, "bf16": torch.bfloat16}[precision])
    if checkpoints:
        model.gradient_checkpointing_enable(*family.get("checkpointing_arguments", ()))
    if lora:
        import peft
        model = peft.get_peft_model(model, peft.LoraConfig(r=8, lora_dropout=0.0, target_modules=family["lora_targets"]))
    return model.cuda().train()


def make_batch(family, dtype):
    import torch

    size, given = family["batch_size"], family["input"]
    batch = {}
    if "tokens" in given:
        batch["input_ids"] = torch.zeros(size, given["tokens"], dtype=torch.int64)
        names, shape = given.get("targets", ["labels"]), given.get("labels", [given.get("target_tokens", given["tokens"])])
        batch |= {name: torch.zeros(size, *shape, dtype=torch.int64) for name in names}
    if "image" in given:
        batch["pixel_values"] = torch.zeros(size, 3, *given["image"], dtype=dtype)
        if "labels" in given:
            batch["labels"] = torch.zeros(size, *given["labels"], dtype=torch.int64)
    if "samples" in given:
        batch["input_values"] = torch.zeros(size, given["samples"], dtype=dtype)
        batch["labels"] = torch.zeros(size, *given.get("labels", ()), dtype=torch.int64)
    return {name: tensor.cuda() for name, tensor in batch.items()}


def loss_of(output):
    loss = getattr(output, "loss", None)  # an encoder without a head has none
    return output.last_hidden_state.mean() if loss is None else loss


def record(family, case, path=None):
    import torch
    import memfathom.torch

    counts = {}

    def train():
        model = make_model(family, case)
        counts["parameters"] = sum(p.numel() for p in model.parameters())
        optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad])
        batch = make_batch(family, torch.float32 if case == "fp32" else torch.bfloat16)
        while True:
            loss_of(model(**batch)).backward()
            optimizer.step()
            optimizer.zero_grad()

    gc.collect()
    with memfathom.torch.recording(path) as recorded:
        train()
    live, sizes, phase, peaks = 0, {}, None, {}
    for event in recorded._recorder.events:
        if event["op"] == "phase":
            phase = event["name"], recorded._phases.iteration_of(event)
        elif event["op"] == "alloc":
            sizes[event["id"]] = (event["bytes"] + 511) // 512 * 512
            live += sizes[event["id"]]
        elif event["op"] == "free":
            live -= sizes.pop(event["id"])
        if phase is not None:
            peaks[phase] = max(live, peaks.get(phase, 0))
    return counts["parameters"], {name: peaks[name, 2] for name in PHASES}, list(recorded.guesses)


def job_of(family, case):
    precision, checkpoints, lora = CASES[case]
    given = family["input"]
    training = {"mode": "train", "batch_size": family["batch_size"], "precision": precision, "optimizer": {"name": "adamw"}}
    for key, name in (("tokens", "sequence_length"), ("target_tokens", "target_sequence_length"), ("samples", "sequence_length")):
        if key in given:
            training[name] = given[key]
    if "image" in given:
        training["image_size"] = given["image"]
    if checkpoints:
        training["gradient_checkpointing"] = "full"
    if lora:
        training["lora"] = {"rank": 8, "targets": family["lora_targets"], "dropout": 0, "precision": "fp32"}
    return {"model": {"config": family["config"]}, "training": training, "allocator": {"backend": "none"},
            "target": {"gpu": "a100-80gb", "stack": {"framework": "pytorch", "version": "2.15", "transformers": "5.23.0"}}}


def estimated(family, case):
    program = os.environ.get("MEMFATHOM_PROGRAM", os.path.join(ROOT, "build", "release", "bin", "memfathom"))
    done = subprocess.run([program, "estimate", "-", "--format", "json"], input=json.dumps(job_of(family, case)), capture_output=True, text=True)
    if done.returncode not in (0, 1):
        raise SystemExit(f"{family['name']}, {case}: {done.stderr.strip()}")
    answer = json.loads(done.stdout)
    return answer["parameters"]["total"], {p["name"]: p["allocated_peak_bytes"] for p in answer["phases"] if p["iteration"] == 2}


def families(wanted):
    for name in wanted or sorted(n[:-5] for n in os.listdir(FOLDER) if n.endswith(".json")):
        with open(os.path.join(FOLDER, name + ".json")) as file:
            yield {"name": name} | json.load(file)


def write(family):
    figures = "".join(",\n  %s: %s" % (json.dumps(key), json.dumps(family[key])) for key in family if key not in ("name", "recorded"))
    cases = ",\n".join("    %s: %s" % (json.dumps(case), json.dumps(family["recorded"][case])) for case in family["recorded"])
    with open(os.path.join(FOLDER, family["name"] + ".json"), "w") as file:
        file.write("{" + figures[1:] + ',\n  "recorded": {\n' + cases + "\n  }\n}\n")


def record_all(wanted):
    import peft
    import torch
    import transformers

    for family in families(wanted):
        recorded = {}
        for case in family.get("cases", CASES):
            try:
                parameters, peaks, guesses = record(family, case)
            except Exception as error:
                print(f"{family['name']}, {case}: {type(error).__name__}: {error}", file=sys.stderr, flush=True)
                continue
            recorded[case] = {"parameters": parameters, **peaks}
            for guess in guesses:
                print(f"{family['name']}, {case}: guessed: {guess}", file=sys.stderr, flush=True)
        family["recorded_with"] = f"torch {torch.__version__.split('+')[0]}, transformers {transformers.__version__}, peft {peft.__version__}"
        family["recorded"] = recorded
        write(family)
        print(family["name"], recorded, flush=True)


def deviation(family, case, by_phase):
    """memfathom's peak against the recorded one: the highest of the step, or of each phase."""
    recorded = family["recorded"].get(case)
    if recorded is None:
        return "-"
    parameters, phases = estimated(family, case)
    wrong = parameters - recorded["parameters"]
    if by_phase:
        text = " ".join(f"{100 * (phases[p] / recorded[p] - 1):+.2f}" for p in PHASES)
    else:
        text = f"{100 * (max(phases[p] for p in PHASES) / max(recorded[p] for p in PHASES) - 1):+.2f} %"
    return text + (f" ({wrong:+d} parameters)" if wrong else "")


def compare_all(wanted, by_phase):
    print("| family | parameters | " + " | ".join(CASES) + " |")
    print("|---|---:|" + "---:|" * len(CASES))
    for family in families(wanted):
        parameters = next(r["parameters"] for case, r in family["recorded"].items() if case != "lora")
        cells = [deviation(family, case, by_phase) for case in CASES]
        print(f"| {family['name']} | {parameters:,} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("record", "compare"))
    parser.add_argument("family", nargs="*")
    parser.add_argument("--phases", action="store_true", help="compare: forward, backward and optimizer step each")
    options = parser.parse_args()
    if options.what == "record":
        record_all(options.family)
    else:
        compare_all(options.family, options.phases)

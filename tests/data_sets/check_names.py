#!/usr/bin/env python3
"""No data set has a code path of its own: nothing that makes an estimate knows the name of one.

Prints each offending line; exits 1 when there is one. usage: check_names.py ROOT
"""

import pathlib
import re
import sys

# What an estimate is computed by. The embedded calibrations (db/published/*.json) name their sources, as they must.
FOLDERS = ("core", "kernels", "estimator", "fitter", "profiler", "api", "cli", "db")
SUFFIXES = {".h", ".cc", ".cu", ".cuh"}

# Files and folders of the measurements, their sources, and the ids of their rows. Plain words that are also families of
# models or libraries (mlp, cnn, timm, peft) count only where a row's number follows.
NAMES = re.compile(
    r"gpumemnet|schedtune|five_gpus|layer_ops|llm_finetune|llm_inference|published_cases|fit_bounds|naive_attention|"
    r"vision_model_zoo|pdearena|optimum-benchmark|ms-swift|cs336|fsdp_qlora|\bfsdpq\b|hf-sdpa|hf-v100|ftr-leg|"
    r"litgpt-(rt|ch)|\bcarma\b|_a100_smi|_gpus_smi|\b(mlp|cnn|timm|pde|peft|published)/[0-9]",
    re.IGNORECASE)

# A tool whose files and command lines are read, and which also published measurements.
READERS = ("estimator/readers", "estimator/command_line")


def main() -> int:
    root = pathlib.Path(sys.argv[1])
    complaints = files = 0
    for folder in FOLDERS:
        for path in sorted((root / folder).rglob("*")):
            if path.suffix not in SUFFIXES:
                continue
            files += 1
            for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
                found = NAMES.search(line)
                if found and not (found[0] == "ms-swift" and str(path.relative_to(root)).startswith(READERS)):
                    print(f"{path.relative_to(root)}:{number}: {found[0]} is a data set's name: {line.strip()}")
                    complaints += 1
    if files == 0:
        print(f"{root} holds none of {', '.join(FOLDERS)}")
        return 1
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())

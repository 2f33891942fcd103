"""Records a script at several sizes, each in a process of its own, and joins the recordings (vary.py)."""
from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile

from . import vary
from .script_sizes import Place, place_of


def _command(path: str, options: list[str], is_module: bool, words: list[str], places: dict[str, Place], sizes: dict[str, int]) -> list[str]:
    assigned: list[str] = []
    script, arguments = words[0], words[1:]
    for name, value in sizes.items():
        arguments = places[name].words(arguments, value)
        for each in places[name].assignments(value):
            assigned += ["--assign", each]
    return [sys.executable, "-m", "memfathom._with_torch", "script", "-o", path, *options, *assigned, *(["-m"] if is_module else []), script, *arguments]


def record(path: str, options: list[str], asked: list[str], is_module: bool, words: list[str]) -> int:
    """The exit code of the first recording, which is of the script as it is; 0 also where the others cannot be joined to it."""
    first = [sys.executable, "-m", "memfathom._with_torch", "script", "-o", path, *options, *(["-m"] if is_module else []), *words]
    code = subprocess.call(first)
    if code:
        return code
    try:
        _join(path, options, asked, is_module, words)
    except vary.NotVariable as why:
        print(f"memfathom: the recording holds for its own sizes only: {why}", file=sys.stderr, flush=True)
    return 0


def _join(path: str, options: list[str], asked: list[str], is_module: bool, words: list[str]) -> None:
    places: dict[str, Place] = {}
    for one in asked:
        size, _, named = one.partition("=")
        if size not in ("batch_size", "sequence_length"):
            raise vary.NotVariable(f"--vary {one}: it must be batch_size or sequence_length")
        places[size] = place_of(size, named, None if is_module else words[0], words[1:])
    now = {size: places[size].value for size in ("batch_size", "sequence_length") if size in places}
    nodes, check = vary.sizes_to_record(now)
    with tempfile.TemporaryDirectory() as folder:
        lines = []
        for i, sizes in enumerate([*nodes, check]):
            part = os.path.join(folder, f"{i}.jsonl.gz")
            if sizes == now:
                shutil.copyfile(path, part)
            else:
                done = subprocess.run(_command(part, options, is_module, words, places, sizes), capture_output=True, text=True)
                if done.returncode:
                    said = [line for line in done.stderr.splitlines() if line.strip() and not line.startswith("{")]
                    raise vary.NotVariable(f"the script fails at {', '.join(f'{n} {v}' for n, v in sizes.items())}: {said[-1] if said else done.returncode}")
            lines.append((sizes, vary.lines_of(part)))
        vary.write(path, vary.joined(lines[:-1], lines[-1]))

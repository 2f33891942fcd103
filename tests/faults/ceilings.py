#!/usr/bin/env python3
"""Holds commands over hostile and large inputs to ceilings of time, memory and output.

ceilings.py MEMFATHOM [--only NAME] [--log FILE]

Time is the processor's, in multiples of what the same machine takes at the same moment for `estimate` of GPT-2 (about 20 ms), so that busy
and slow machines pass too. A case answers or refuses with one sentence; none crashes. --log appends "NAME CODE TIMES RSS_MIB OUTPUT_KIB
FAILED" lines for scripts/reliability.
"""
import argparse
import gzip
import json
import os
import pathlib
import resource
import shutil
import subprocess
import sys
import tempfile

PATIENCE = 600
MIB = 1 << 20


def job(model, training=None, **more):
    return json.dumps({"model": model, "training": training or {"batch_size": 1, "sequence_length": 32}, "target": {"gpu": "h100-80gb"}, **more})


def preset(name, **training):
    return job({"preset": name}, {"batch_size": 1, "sequence_length": 32, **training})


def laughs():
    text = "a: &a0 [x, x, x, x, x, x, x, x, x, x]\n"
    for level in range(1, 40):
        text += f"a{level}: &a{level} [" + ", ".join([f"*a{level - 1}"] * 10) + "]\n"
    return text


def modules(count):
    layers = [{"type": "linear", "in": 64, "out": 64} for _ in range(count)]
    return job({"layers": layers, "input": {"shape": [64]}, "loss": "cross_entropy"}, {"batch_size": 4})


# name: (words, files, ceiling in reference jobs, MiB, KiB of output)
def cases():
    estimate = ["estimate", "input"]
    batch = ["estimate", "--batch", "input"]
    deep = "[" * 60_000 + "]" * 60_000
    zeros = {"input": None}  # linked to /dev/zero
    yield "frames", estimate, preset("cogvideox-2b", num_frames=100_001), 600, 1500, 64
    yield "new-tokens", estimate, preset("llama-3-8b", mode="generate", new_tokens=1 << 20), 6000, 1500, 64
    yield "varying-70b", estimate, preset("llama-3-70b", sequence_length=2048, lengths="varying", lora={"rank": 8}), 4000, 1500, 64
    yield "experts-235b", estimate, preset("qwen3-235b-a22b", sequence_length=4096), 1000, 2500, 64
    yield "recommend-235b", ["recommend", "input"], preset("qwen3-235b-a22b", sequence_length=4096), 8000, 3500, 64
    yield "modules", estimate, modules(1000), 400, 600, 512
    yield "modules-100000", estimate, modules(100_000), 2000, 3500, 512
    yield "preference", estimate, preset("gpt2", batch_size=100_000_000, preference={"method": "dpo"}), 400, 3500, 64
    yield "layers", estimate, job({"config": {"model_type": "llama", "hidden_size": 64, "intermediate_size": 64, "num_hidden_layers": 1_000_000_000,
                                            "num_attention_heads": 4, "vocab_size": 64}}), 2000, 3500, 64
    yield "rows", estimate, preset("gpt2", batch_size=1 << 62), 100, 600, 64
    yield "laughs", estimate, laughs(), 400, 600, 64
    yield "deep", estimate, deep, 100, 600, 64
    yield "deep-yaml", estimate, "a:\n" + "".join(" " * i + "- \n" for i in range(3000)), 400, 600, 64
    yield "long-line", estimate, '{"model": "' + "x" * (100 * MIB) + '"}', 400, 700, 64
    yield "many-keys", estimate, json.dumps({f"k{i}": i for i in range(400_000)}), 800, 900, 64
    yield "wrong-lines", batch, "{}\n" * 100_000, 1000, 600, 1 << 16
    yield "deep-lines", batch, (deep + "\n") * 100, 400, 600, 1 << 12
    yield "long-lines", batch, ('{"id": "' + "y" * (8 * MIB) + '"}\n') * 8, 400, 900, 1 << 18
    yield "blank-lines", batch, "\n" * (64 * MIB), 600, 600, 64
    yield "rows-of-csv", ["observe", "input.csv"], "job,metric,bytes\n" + "nothing.json,device,1\n" * 1_000_000, 1000, 1500, 64
    yield "wide-csv", ["observe", "input.csv"], "job,metric,bytes\n" + "," * (32 * MIB) + "\n", 600, 2500, 64
    yield "log", ["oom", "input"], ("CUDA out of memory. Tried to allocate 2.00 GiB (GPU 0; " + "9" * 200 + "\n") * 200_000, 1000, 1500, 64
    yield "log-of-brackets", ["oom", "input"], "torch.OutOfMemoryError: CUDA out of memory. " + "(" * (16 * MIB), 1000, 1500, 64
    yield "script", ["estimate", "--from", "input.sh"], "python train.py " + "--flag $(($((1)) + 1)) " * 100_000, 1500, 1500, 256
    yield "script-of-loops", ["estimate", "--from", "input.sh"], "for a in 1 2 3 4 5 6 7 8 9; do " * 12 + "python train.py\n" + "done; " * 12, 600, 900, 256
    yield "words", ["estimate", *["--set", "training.batch_size=1"] * 20_000], "", 600, 900, 64
    yield "toml", ["estimate", "--from", "input.toml"], "[" + "a." * 100_000 + "a]\n", 600, 900, 64
    yield "snapshot", ["explain", "input.pickle"], b"\x80\x04" + b"]" * 5_000_000 + b".", 600, 1500, 64
    yield "snapshot-memo", ["explain", "input.pickle"], b"\x80\x04]" + b"(lp0\n" * 1_000_000 + b".", 600, 1500, 64
    yield "import", ["db", "import", "input.json"], '{"schema": "memfathom.calibration/1", "coefficients": [' + "[]," * 3_000_000 + "[]]}", 800, 1500, 64
    yield "bench", ["bench", "compare", "input", "input"], json.dumps({"benchmarks": [{"name": f"b{i}"} for i in range(200_000)]}), 1000, 1500, 64
    yield "trace", estimate, job({"trace": "trace.jsonl.gz"}), 600, 600, 64
    for name, words in {"estimate": estimate, "batch": batch, "from": ["estimate", "--from", "input"], "observe": ["observe", "input"],
                        "import": ["db", "import", "input"], "merge": ["db", "merge", "input"], "oom": ["oom", "input"],
                        "explain": ["explain", "input"], "bench": ["bench", "compare", "input", "input"]}.items():
        yield f"zeros-{name}", words, zeros["input"], 400, 900, 64


class Lab:
    def __init__(self, program):
        self.program = program
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="memfathom-ceilings-"))
        (self.folder / "reference.json").write_text(preset("gpt2"))
        (self.folder / "trace.jsonl.gz").write_bytes(gzip.compress(b"\n" * (512 * MIB), 1))

    def run(self, words):
        """Exit code, seconds of processor, MiB, KiB of both outputs, standard error."""
        kept = {key: value for key, value in os.environ.items() if not key.startswith("MEMFATHOM_")}
        with open(self.folder / "out", "wb") as out, open(self.folder / "err", "wb") as err:
            process = subprocess.Popen([self.program, "--db", "store.db", *words], cwd=self.folder, stdin=subprocess.DEVNULL, stdout=out, stderr=err,
                                       env={**kept, "MEMFATHOM_NVML": "/nonexistent", "XDG_CACHE_HOME": str(self.folder / "cache")},
                                       preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, (PATIENCE, PATIENCE)))
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        written = sum((self.folder / name).stat().st_size for name in ("out", "err")) / 1024
        said = (self.folder / "err").read_bytes()[-600:].decode(errors="replace").strip()
        return process.returncode, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024, written, said

    def reference(self):
        return min(self.run(["estimate", "reference.json"])[1] for _ in range(3))

    def measure(self, words, content):
        for word in words:
            if not word.startswith("input"):
                continue
            path = self.folder / word
            path.unlink(missing_ok=True)
            if content is None:
                path.symlink_to("/dev/zero")
            elif isinstance(content, bytes):
                path.write_bytes(content)
            else:
                path.write_text(content)
        reference = self.reference()
        code, seconds, rss, written, said = self.run(words)
        return code, seconds / reference, rss, written, said


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--only", action="append")
    parser.add_argument("--log")
    options = parser.parse_args()
    lab = Lab(os.path.abspath(options.program))
    failures = 0
    try:
        for name, words, content, times, mebibytes, kibibytes in cases():
            if options.only and name not in options.only:
                continue
            code, took, rss, written, said = lab.measure(words, content)
            found = [f"{what}: {value:.0f} where at most {ceiling} {unit} are allowed" for what, value, ceiling, unit in
                     (("time", took, times, "reference jobs"), ("memory", rss, mebibytes, "MiB"), ("output", written, kibibytes, "KiB"))
                     if value > ceiling]
            if code not in (0, 1, 2, 3, 4):
                found.append(f"exit code {code}")
            if code > 1 and not said and "--batch" not in words:
                found.append("no sentence")
            failures += bool(found)
            print(f"{name}: exit {code}, {took:.1f} reference jobs, {rss:.0f} MiB, {written:.0f} KiB{'; FAILED: ' + '; '.join(found) if found else ''}"
                  + (f" [{said[:160]}]" if code > 1 else ""), flush=True)
            if options.log:
                pathlib.Path(options.log).open("a", encoding="utf-8").write(f"{name} {code} {took:.1f} {rss:.0f} {written:.0f} {int(bool(found))}\n")
    finally:
        shutil.rmtree(lab.folder, ignore_errors=True)
    sys.exit(1 if failures else 0)


main()

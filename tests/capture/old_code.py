"""Old code as referee: steps of GPT-NeoX, BLOOM and Mistral by the transformers that is installed, against the program's builders.

    old_code.py            # needs torch, an old transformers, and MEMFATHOM_PROGRAM; prints the deviation of each case

scripts/test-old-transformers runs it with releases from 4.36 to 4.41. The builders are asked for that release (target.stack.transformers).
"""
import json
import os
import subprocess
import sys
import tempfile
import warnings

import torch
import transformers

import memfathom.torch as recorded

PROGRAM = os.environ.get("MEMFATHOM_PROGRAM", "")
STACK = {"version": ".".join(torch.__version__.split(".")[:2]), "transformers": transformers.__version__}
BATCH, LENGTH = 2, 512
FAMILIES = {
    "gpt_neox": dict(architectures=["GPTNeoXForCausalLM"], hidden_size=512, intermediate_size=2048, num_hidden_layers=4, num_attention_heads=8, vocab_size=8000, max_position_embeddings=1024),
    "bloom": dict(architectures=["BloomForCausalLM"], hidden_size=512, n_layer=4, n_head=8, vocab_size=8000),
    "mistral": dict(architectures=["MistralForCausalLM"], hidden_size=512, intermediate_size=1408, num_hidden_layers=4, num_attention_heads=8, num_key_value_heads=2, vocab_size=8000, max_position_embeddings=1024),
}
# what: precision, gradient checkpointing, the old cache of keys and values
CASES = {"fp32": ("fp32", False, False), "bf16": ("bf16", False, False), "checkpointing": ("bf16", True, False), "use_cache": ("bf16", False, True)}
TYPES = {"fp32": torch.float32, "bf16": torch.bfloat16}


def record(family, case, path):
    precision, checkpointing, cache = CASES[case]
    config = transformers.AutoConfig.for_model(family, **FAMILIES[family])
    config.use_cache = cache
    model = getattr(transformers, config.architectures[0])._from_config(config, torch_dtype=TYPES[precision]).train()
    with recorded.recording(path, stop=False):
        model.cuda()
        if checkpointing:
            model.gradient_checkpointing_enable()
        optimizer = torch.optim.AdamW(model.parameters(), 1e-4)
        for _ in range(2):
            tokens = torch.randint(0, 8000, (BATCH, LENGTH)).cuda()
            model(input_ids=tokens, labels=tokens).loss.backward()
            optimizer.step()
            optimizer.zero_grad()


def peak(job, folder):
    path = os.path.join(folder, "job.json")
    with open(path, "w") as file:
        json.dump(job | {"target": {"gpu": "a100-80gb", "stack": STACK}}, file)
    done = subprocess.run([PROGRAM, "--db", os.path.join(folder, "db"), "estimate", path, "--format", "json"], capture_output=True, text=True)
    if not done.stdout:
        raise SystemExit(done.stderr)
    return json.loads(done.stdout)["totals"]["allocated_peak_bytes"]


def main():
    warnings.simplefilter("ignore")
    for family in FAMILIES:
        for case, (precision, checkpointing, cache) in CASES.items():
            with tempfile.TemporaryDirectory() as folder:
                path = os.path.join(folder, "step.jsonl.gz")
                record(family, case, path)
                seen = peak({"model": {"trace": path}}, folder)
                training = {"batch_size": BATCH, "sequence_length": LENGTH, "precision": precision, "gradient_checkpointing": "full" if checkpointing else "none", "use_cache": cache}
                built = peak({"model": {"config": {"model_type": family, **FAMILIES[family]}}, "training": training}, folder)
            print(f"transformers {transformers.__version__}, {family}, {case}: recorded {seen / 2**20:.1f} MiB, built {built / 2**20:.1f} MiB, {100 * (built / seen - 1):+.2f} %", flush=True)


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""Records a training step of families that memfathom has no builder of, from their configurations (docs/families.md).

    scripts/record-without-builder.py [--program build/release/bin/memfathom] [name ...]

Needs a Python with torch, transformers, diffusers and timm; small models, AdamW, fp32. Prints a row a family: parameters, allocated
peak, and what the recording had to guess. With --program each is also asked for by `memfathom estimate --via torch`.
"""
import argparse
import gzip
import importlib
import json
import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "python"))

TEXT = {"hidden_size": 128, "num_hidden_layers": 4, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 32, "intermediate_size": 256, "vocab_size": 1000, "pad_token_id": 0}
LENGTH = {"batch_size": 2, "sequence_length": 256}
IMAGE = {"batch_size": 2, "image_size": 224}
VIDEO = {"batch_size": 1, "image_size": 128, "num_frames": 9}


def language(kind, name, **more):
    return {"model_type": kind, "architectures": [name], **TEXT, **more}, LENGTH


CASES = {
    "gemma3n": language("gemma3n_text", "Gemma3nForCausalLM", num_hidden_layers=4, vocab_size_per_layer_input=1000, hidden_size_per_layer_input=32, num_kv_shared_layers=0, laurel_rank=8,
                        intermediate_size=[256] * 4, layer_types=["sliding_attention"] * 3 + ["full_attention"], activation_sparsity_pattern=[0.0] * 4),
    "gemma4": language("gemma4_text", "Gemma4ForCausalLM"),
    "qwen3_next": language("qwen3_next", "Qwen3NextForCausalLM", num_experts=8, num_experts_per_tok=2, moe_intermediate_size=64, shared_expert_intermediate_size=64, linear_num_key_heads=4,
                           linear_num_value_heads=8, linear_key_head_dim=16, linear_value_head_dim=16),
    "qwen3_5": language("qwen3_5_text", "Qwen3_5ForCausalLM", linear_num_key_heads=4, linear_num_value_heads=8, linear_key_head_dim=16, linear_value_head_dim=16),
    "llama4": language("llama4_text", "Llama4ForCausalLM", num_local_experts=4, intermediate_size_mlp=256),
    "mllama": language("mllama_text_model", "MllamaForCausalLM", cross_attention_layers=[]),
    "minimax": language("minimax", "MiniMaxForCausalLM", num_local_experts=4, num_experts_per_tok=2, block_size=64),
    "falcon_h1": language("falcon_h1", "FalconH1ForCausalLM", mamba_d_ssm=128, mamba_n_heads=4, mamba_d_head=32, mamba_d_state=16, mamba_n_groups=1, mamba_chunk_size=64),
    "mamba": language("mamba", "MambaForCausalLM", state_size=16),
    "mamba2": language("mamba2", "Mamba2ForCausalLM", num_heads=8, head_dim=32, state_size=16, n_groups=1, chunk_size=64),
    "chatglm (glm)": language("glm", "GlmForCausalLM"),
    "segformer": ({"model_type": "segformer", "architectures": ["SegformerForSemanticSegmentation"]}, IMAGE),
    "mnasnet": ({"architecture": "mnasnet_100"}, IMAGE),
    "SD3": ({"_class_name": "SD3Transformer2DModel", "sample_size": 32, "num_layers": 2, "attention_head_dim": 32, "num_attention_heads": 4, "joint_attention_dim": 128, "caption_projection_dim": 128,
             "pooled_projection_dim": 64, "pos_embed_max_size": 96}, {"batch_size": 2, "image_size": 256}),
    "Wan": ({"_class_name": "WanTransformer3DModel", "num_attention_heads": 4, "attention_head_dim": 32, "text_dim": 128, "ffn_dim": 256, "num_layers": 2, "freq_dim": 64}, VIDEO),
    "LTX": ({"_class_name": "LTXVideoTransformer3DModel", "num_attention_heads": 4, "attention_head_dim": 32, "cross_attention_dim": 128, "num_layers": 2, "caption_channels": 128}, VIDEO),
    "HunyuanVideo": ({"_class_name": "HunyuanVideoTransformer3DModel", "num_attention_heads": 4, "attention_head_dim": 32, "num_layers": 2, "num_single_layers": 2, "num_refiner_layers": 1,
                      "text_embed_dim": 128, "pooled_projection_dim": 64, "rope_axes_dim": [8, 12, 12]}, VIDEO),
}


def header_of(path):
    with gzip.open(path, "rt") as file:
        return json.loads(file.readline())


def recorded(job, folder):
    from memfathom.torch.from_job import recorded_job
    from memfathom.torch.job_keys import NotAnswered

    path = os.path.join(folder, "step.jsonl.gz")
    try:
        told = recorded_job(job, path, {}, [])
    except NotAnswered as refusal:
        return None, str(refusal)
    guesses = [guess["what"] for guess in header_of(path)["guesses"]]
    return told, "; ".join(guesses)


def asked(program, job, folder):
    path = os.path.join(folder, "job.json")
    with open(path, "w") as file:
        json.dump(job, file)
    done = subprocess.run([program, "--db", os.path.join(folder, "db"), "estimate", path, "--via", "torch", "--python", sys.executable, "--gpu", "rtx-4090", "--format", "json"],
                          capture_output=True, text=True)
    return json.loads(done.stdout)["totals"]["allocated_peak_bytes"] if done.stdout else done.stderr.strip()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--program")
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    failed = 0
    print("| family | model | parameters | allocated peak | guessed |\n|---|---|---:|---:|---|")
    for name, (config, training) in CASES.items():
        if options.names and name not in options.names:
            continue
        job = {"model": {"config": config}, "training": training}
        with tempfile.TemporaryDirectory() as folder:
            told, said = recorded(job, folder)
            if told is None:
                failed += 1
                print(f"| {name} | refused: {said} | | | |", flush=True)
                continue
            line = f"| {name} | {told['model']} | {told['parameters']:,} | {told['allocated_peak_bytes'] / 2**20:.1f} MiB | {said or 'nothing'} |"
            print(line if not options.program else line + f" {asked(options.program, job, folder)}", flush=True)
    return int(failed > 0)


if __name__ == "__main__":
    importlib.import_module("torch")
    sys.stdout.reconfigure(line_buffering=True)
    sys.exit(main())

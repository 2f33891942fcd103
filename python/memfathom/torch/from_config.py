"""A training step of a transformers model that only a config.json describes: no weights, no download.

    memfathom capture --gpu a100-80gb -m memfathom.torch.from_config config.json --batch-size 4 --sequence-length 1024

For families that memfathom has no builder of: the model's code is that of the installed transformers, which the first line on
standard error names. Batches are full: every sequence has the given length.
"""
import argparse
import os
import sys
import time

import torch

PRECISIONS = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}


def parsed():
    parser = argparse.ArgumentParser(prog="memfathom.torch.from_config", description="records a training step of a model of transformers from its config.json")
    parser.add_argument("config", help="config.json, or the folder that has it")
    parser.add_argument("--batch-size", type=int, default=1)
    parser.add_argument("--sequence-length", type=int, default=512)
    parser.add_argument("--precision", choices=PRECISIONS, default="fp32", help="of weights and computation; amp-* of memfathom estimate are not offered")
    parser.add_argument("--gradient-checkpointing", action="store_true")
    parser.add_argument("--mode", choices=("training", "inference"), default="training")
    return parser.parse_args()


def model_class(transformers, config):
    """The class that the configuration names, else transformers' choice of a language model for it."""
    for name in config.architectures or ():
        if hasattr(transformers, name):
            return getattr(transformers, name)._from_config
    return transformers.AutoModelForCausalLM.from_config


def batch_of(model, config, options):
    text = config.get_text_config()
    if model.main_input_name == "input_ids":
        tokens = torch.randint(text.vocab_size, (options.batch_size, options.sequence_length)).cuda()
        return {"input_ids": tokens, "labels": tokens}
    if model.main_input_name == "pixel_values":
        size = config.image_size if isinstance(config.image_size, (list, tuple)) else [config.image_size] * 2
        return {"pixel_values": torch.zeros(options.batch_size, getattr(config, "num_channels", 3), *size, dtype=model.dtype).cuda(),
                "labels": torch.zeros(options.batch_size, dtype=torch.int64).cuda()}
    raise SystemExit(f"{type(model).__name__} takes {model.main_input_name}, for which no batch can be made from a configuration; record your script with memfathom capture train.py")


def main():
    options, begin = parsed(), time.monotonic()
    import transformers

    if not os.path.exists(options.config):
        raise SystemExit(f"{options.config}: there is no such file; name a config.json or its folder")
    config = transformers.AutoConfig.from_pretrained(options.config)
    model = model_class(transformers, config)(config, dtype=PRECISIONS[options.precision]).cuda()
    print(f"recorded with transformers {transformers.__version__}, torch {torch.__version__}: {type(model).__name__}, {sum(p.numel() for p in model.parameters()):,} parameters", file=sys.stderr)
    if options.mode == "inference":
        model.eval()
        with torch.no_grad():
            batch = batch_of(model, config, options)
            model(**{key: value for key, value in batch.items() if key != "labels"})
        return
    model.train()
    if options.gradient_checkpointing:
        model.gradient_checkpointing_enable()
    optimizer = torch.optim.AdamW(model.parameters())
    for step in range(3):
        if step == 2:
            print(f"recorded in {time.monotonic() - begin:.1f} s", file=sys.stderr)
        model(**batch_of(model, config, options)).loss.backward()
        optimizer.step()
        optimizer.zero_grad()


if __name__ == "__main__":
    main()

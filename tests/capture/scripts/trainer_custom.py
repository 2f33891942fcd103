import torch, transformers
from dataclasses import dataclass, field
from torch.utils.data import IterableDataset
from transformers import HfArgumentParser, TrainerCallback, TrainingArguments, Trainer

@dataclass
class Script:
    layers: int = field(default=4)
    length: int = field(default=256)

class Stream(IterableDataset):
    def __init__(self, n): self.n = n
    def __iter__(self):
        while True:
            x = torch.randint(5, 8000, (self.n,)); yield {"input_ids": x, "attention_mask": torch.ones_like(x), "labels": x.masked_fill(torch.rand(self.n) > 0.15, -100)}

class Smooth(Trainer):
    def compute_loss(self, model, inputs, return_outputs=False, num_items_in_batch=None):
        labels = inputs.pop("labels")
        out = model(**inputs)
        keep = labels != -100
        loss = torch.nn.functional.cross_entropy(out.logits[keep].float(), labels[keep], label_smoothing=0.1)
        return (loss, out) if return_outputs else loss

class Say(TrainerCallback):
    def on_step_end(self, args, state, control, **kwargs): print("step", state.global_step, torch.cuda.max_memory_allocated() if torch.cuda.is_available() else "")

script, args = HfArgumentParser((Script, TrainingArguments)).parse_dict({"output_dir": "/tmp/capture/out", "per_device_train_batch_size": 8, "gradient_accumulation_steps": 2, "max_steps": 4, "bf16": True, "gradient_checkpointing": True,
    "gradient_checkpointing_kwargs": {"use_reentrant": False}, "optim": "adafactor", "report_to": [], "logging_steps": 1, "eval_strategy": "steps", "eval_steps": 2, "dataloader_num_workers": 2, "save_strategy": "no", "max_grad_norm": 0.5, "warmup_steps": 2})
model = transformers.RobertaForMaskedLM(transformers.RobertaConfig(vocab_size=8000, num_hidden_layers=script.layers, hidden_size=256, num_attention_heads=4, intermediate_size=1024, max_position_embeddings=514))
import itertools
class Few(torch.utils.data.Dataset):
    def __len__(self): return 32
    def __getitem__(self, i): return next(iter(Stream(script.length)))
Smooth(model, args, train_dataset=Stream(script.length), eval_dataset=Few(), callbacks=[Say()]).train()

"""HF Trainer with a dataset class and a collator of its own (random spans masked), compute_metrics on the logits, evaluation every four steps with a larger batch, a callback and label names."""
# later: grows
import numpy as np
import torch
from torch.utils.data import Dataset
from transformers import BertConfig, BertForMaskedLM, EarlyStoppingCallback, Trainer, TrainerCallback, TrainingArguments

class Lines(Dataset):
    def __init__(self, n, seed):
        g = torch.Generator().manual_seed(seed)
        self.rows = [torch.randint(5, 3000, (96,), generator=g) for _ in range(n)]
    def __len__(self): return len(self.rows)
    def __getitem__(self, i): return {"input_ids": self.rows[i]}

class SpanCollator:
    def __init__(self, mask_id=4, rate=0.2):
        self.mask_id, self.rate = mask_id, rate
    def __call__(self, features):
        ids = torch.stack([f["input_ids"] for f in features])
        labels = ids.clone()
        masked = torch.bernoulli(torch.full(labels.shape, self.rate)).bool()
        labels[~masked] = -100
        ids[masked] = self.mask_id
        return {"input_ids": ids, "attention_mask": torch.ones_like(ids), "labels": labels}

class Speak(TrainerCallback):
    def on_log(self, args, state, control, logs=None, **kwargs):
        print({k: round(v, 3) if isinstance(v, float) else v for k, v in (logs or {}).items()})

def compute_metrics(prediction):
    logits, labels = prediction
    chosen = labels != -100
    return {"accuracy": float((np.argmax(logits, -1)[chosen] == labels[chosen]).mean())}

model = BertForMaskedLM(BertConfig(vocab_size=3000, hidden_size=256, num_hidden_layers=4, num_attention_heads=4, intermediate_size=1024))
args = TrainingArguments("out", per_device_train_batch_size=8, per_device_eval_batch_size=32, gradient_accumulation_steps=2, learning_rate=5e-4, warmup_steps=2, max_steps=10, eval_strategy="steps",
                         eval_steps=4, logging_steps=1, save_strategy="steps", save_steps=4, save_total_limit=1, load_best_model_at_end=True, metric_for_best_model="accuracy", report_to="none", label_names=["labels"])
Trainer(model, args, data_collator=SpanCollator(), train_dataset=Lines(256, 0), eval_dataset=Lines(128, 1), compute_metrics=compute_metrics,
        callbacks=[Speak(), EarlyStoppingCallback(3)]).train()

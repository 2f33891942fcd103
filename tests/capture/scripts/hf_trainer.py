# job: {"model": {"preset": "gpt2"}, "training": {"batch_size": 4, "sequence_length": 256, "precision": "amp-bf16", "optimizer": "adamw", "gradient_clipping": 1.0}}
import argparse, torch
from datasets import Dataset
from transformers import AutoConfig, AutoModelForCausalLM, Trainer, TrainingArguments, default_data_collator

p = argparse.ArgumentParser()
p.add_argument("--batch", type=int, default=4)
p.add_argument("--out", default="/tmp/memfathom-capture-out")
a = p.parse_args()
config = AutoConfig.for_model("gpt2")
config.use_cache = False
model = AutoModelForCausalLM.from_config(config)
rows = torch.randint(0, 50000, (64, 256)).tolist()
data = Dataset.from_dict({"input_ids": rows, "labels": rows})
args = TrainingArguments(a.out, per_device_train_batch_size=a.batch, max_steps=4, bf16=True, logging_steps=1, report_to=[], save_strategy="no")
Trainer(model, args, train_dataset=data, data_collator=default_data_collator).train()

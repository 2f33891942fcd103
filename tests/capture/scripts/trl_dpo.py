from datasets import Dataset
import torch
from transformers import AutoModelForCausalLM
from trl import DPOConfig, DPOTrainer
from toy import llama, text, tokenizer

model = AutoModelForCausalLM.from_config(llama(), dtype=torch.bfloat16)
reference = AutoModelForCausalLM.from_config(llama(), dtype=torch.bfloat16)
rows = range(1, 33)
data = Dataset.from_dict({"prompt": [text(60, i) for i in rows], "chosen": [text(120, i + 1) for i in rows], "rejected": [text(90, i + 2) for i in rows]})
config = DPOConfig("/tmp/memfathom-capture-out", per_device_train_batch_size=2, max_steps=4, bf16=True, logging_steps=1, report_to=[], save_strategy="no")
DPOTrainer(model, reference, args=config, train_dataset=data, processing_class=tokenizer()).train()

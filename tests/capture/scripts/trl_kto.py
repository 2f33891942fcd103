from datasets import Dataset
import torch
from transformers import AutoModelForCausalLM
try:
    from trl import KTOConfig, KTOTrainer
except ImportError:
    from trl.experimental.kto import KTOConfig, KTOTrainer
from toy import llama, text, tokenizer

model = AutoModelForCausalLM.from_config(llama(), dtype=torch.bfloat16)
reference = AutoModelForCausalLM.from_config(llama(), dtype=torch.bfloat16)
rows = range(1, 33)
data = Dataset.from_dict({"prompt": [text(60, i) for i in rows], "completion": [text(100, i + 1) for i in rows], "label": [i % 2 == 0 for i in rows]})
config = KTOConfig("/tmp/memfathom-capture-out", per_device_train_batch_size=4, max_steps=4, bf16=True, logging_steps=1, report_to=[], save_strategy="no")
KTOTrainer(model, reference, args=config, train_dataset=data, processing_class=tokenizer()).train()

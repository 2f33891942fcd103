from datasets import Dataset
from peft import LoraConfig
import torch
from transformers import AutoModelForCausalLM
from trl import SFTConfig, SFTTrainer
from toy import llama, text, tokenizer

model = AutoModelForCausalLM.from_config(llama(), dtype=torch.bfloat16)
data = Dataset.from_dict({"text": [text(400 + i, i) for i in range(1, 65)]})
config = SFTConfig("/tmp/memfathom-capture-out", per_device_train_batch_size=2, gradient_accumulation_steps=2, max_length=256, packing=True, packing_strategy="wrapped", max_steps=4,
                   bf16=True, logging_steps=1, report_to=[], gradient_checkpointing=True, save_strategy="no")
SFTTrainer(model, config, train_dataset=data, processing_class=tokenizer(), peft_config=LoraConfig(r=16, target_modules="all-linear", task_type="CAUSAL_LM")).train()

from datasets import Dataset
import torch
from transformers import AutoModelForCausalLM
from trl import GRPOConfig, GRPOTrainer
from toy import llama, text, tokenizer

def reward(completions, **_):
    return [float(len(set(c.split()))) for c in completions]

model = AutoModelForCausalLM.from_config(llama(num_hidden_layers=2), dtype=torch.bfloat16)
data = Dataset.from_dict({"prompt": [text(20, i) for i in range(1, 33)]})
config = GRPOConfig("/tmp/memfathom-capture-out", per_device_train_batch_size=4, num_generations=4, max_completion_length=16, max_steps=4, bf16=True, logging_steps=1, report_to=[], save_strategy="no")
GRPOTrainer(model, reward_funcs=reward, args=config, train_dataset=data, processing_class=tokenizer()).train()

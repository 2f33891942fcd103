"""GRPO with LoRA, two reward functions of the user's own, several updates per generation."""
import re
import torch
from datasets import Dataset
from peft import LoraConfig
from transformers import AutoModelForCausalLM, TrainerCallback
from trl import GRPOConfig, GRPOTrainer
from toy import llama, text, tokenizer

def reward_length(completions, **kwargs):
    return [-abs(40 - len(c)) / 40 for c in completions]

def reward_format(completions, prompts, answer, **kwargs):
    return [1.0 if re.search(rf"\b{a}\b", c) else 0.0 for c, a in zip(completions, answer)]

class Memory(TrainerCallback):
    def on_step_end(self, args, state, control, **kwargs):
        print("step", state.global_step, torch.cuda.max_memory_allocated() >> 20, "MiB")

data = Dataset.from_dict({"prompt": [text(20 + i % 5, i) for i in range(1, 33)], "answer": [f"w{i}" for i in range(1, 33)]})
config = GRPOConfig("/tmp/memfathom-capture-out", per_device_train_batch_size=8, gradient_accumulation_steps=2, num_generations=4, max_completion_length=24, num_iterations=2, beta=0.04, max_steps=4,
                    bf16=True, gradient_checkpointing=True, temperature=0.9, logging_steps=1, report_to=[], save_strategy="no", scale_rewards="group", loss_type="dr_grpo")
trainer = GRPOTrainer(model=AutoModelForCausalLM.from_config(llama(), dtype=torch.bfloat16), reward_funcs=[reward_length, reward_format], args=config, train_dataset=data, processing_class=tokenizer(),
                      peft_config=LoraConfig(r=16, lora_alpha=32, target_modules="all-linear", task_type="CAUSAL_LM"), callbacks=[Memory()])
trainer.train()

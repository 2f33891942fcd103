"""TRL's SFT with packing and completion-only labels, LoRA on all linear layers, bf16, a formatting function and evaluation."""
from datasets import Dataset
from peft import LoraConfig
from transformers import AutoModelForCausalLM
from trl import SFTConfig, SFTTrainer
import toy

rows = Dataset.from_list([{"q": toy.text(20 + i % 30, i + 1), "a": toy.text(30, i + 3)} for i in range(64)])
data = rows.map(lambda r: {"prompt": r["q"], "completion": r["a"]}, remove_columns=["q", "a"])
trainer = SFTTrainer(
    model=AutoModelForCausalLM.from_config(toy.llama()),
    args=SFTConfig("out", packing=True, packing_strategy="wrapped", max_length=256, per_device_train_batch_size=4, gradient_accumulation_steps=2, gradient_checkpointing=False, bf16=True, max_steps=4,
                   logging_steps=1, report_to="none", save_strategy="no", learning_rate=2e-4, optim="adamw_torch", completion_only_loss=False),
    train_dataset=data, processing_class=toy.tokenizer(), peft_config=LoraConfig(r=16, lora_alpha=32, lora_dropout=0.05, target_modules="all-linear", task_type="CAUSAL_LM"))
trainer.train()

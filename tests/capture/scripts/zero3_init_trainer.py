# world: 2
"""The HF Trainer with a DeepSpeed ZeRO-3 file written by the script itself, optimizer on the host."""
import json, os, tempfile
import torch
from datasets import Dataset
from transformers import AutoModelForCausalLM, DataCollatorForLanguageModeling, Trainer, TrainingArguments
from toy import llama, text, tokenizer

folder = tempfile.mkdtemp()
settings = {"bf16": {"enabled": "auto"}, "zero_optimization": {"stage": 3, "overlap_comm": True, "contiguous_gradients": True, "sub_group_size": 1e9, "reduce_bucket_size": "auto",
            "stage3_prefetch_bucket_size": "auto", "stage3_param_persistence_threshold": "auto", "stage3_gather_16bit_weights_on_model_save": True},
            "gradient_accumulation_steps": "auto", "gradient_clipping": "auto", "train_batch_size": "auto", "train_micro_batch_size_per_gpu": "auto"}
path = os.path.join(folder, "ds_z3.json")
with open(path, "w") as out:
    json.dump(settings, out)
args = TrainingArguments(folder, per_device_train_batch_size=2, gradient_accumulation_steps=2, max_steps=3, bf16=True, deepspeed=path, gradient_checkpointing=True, learning_rate=1e-5, logging_steps=1,
                         report_to=[], save_strategy="no", optim="adamw_torch", lr_scheduler_type="cosine", warmup_steps=1)
tok = tokenizer()
model = AutoModelForCausalLM.from_config(llama(hidden_size=768, num_hidden_layers=3, num_attention_heads=12, num_key_value_heads=12, use_cache=False))
data = Dataset.from_dict({"text": [text(200, i) for i in range(1, 65)]}).map(lambda r: tok(r["text"], truncation=True, max_length=128), remove_columns=["text"])
trainer = Trainer(model=model, args=args, train_dataset=data, data_collator=DataCollatorForLanguageModeling(tok, mlm=False, pad_to_multiple_of=8))
trainer.train()

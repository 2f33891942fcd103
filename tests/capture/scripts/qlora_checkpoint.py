"""QLoRA from a checkpoint on the disk, as the tutorials have it: BitsAndBytesConfig, device_map, paged optimizer, SFT."""
import os, subprocess, sys, tempfile
import torch
from datasets import Dataset
from peft import LoraConfig, get_peft_model, prepare_model_for_kbit_training
from transformers import AutoModelForCausalLM, BitsAndBytesConfig, DataCollatorForLanguageModeling, Trainer, TrainingArguments
from toy import text, tokenizer

folder = os.path.join(tempfile.mkdtemp(), "llama-tiny")
make = "import sys, torch; from toy import llama; from transformers import AutoModelForCausalLM as A; A.from_config(llama(hidden_size=1024, intermediate_size=2816), dtype=torch.bfloat16).save_pretrained(sys.argv[1])"
subprocess.run([sys.executable, "-c", make, folder], check=True, cwd=os.path.dirname(os.path.abspath(__file__)), stderr=subprocess.DEVNULL)
bnb_config = BitsAndBytesConfig(load_in_4bit=True, bnb_4bit_quant_type="nf4", bnb_4bit_compute_dtype=torch.bfloat16, bnb_4bit_use_double_quant=True)
model = AutoModelForCausalLM.from_pretrained(folder, quantization_config=bnb_config, device_map={"": 0}, dtype=torch.bfloat16)
model.config.use_cache = False
model = prepare_model_for_kbit_training(model, use_gradient_checkpointing=True, gradient_checkpointing_kwargs={"use_reentrant": False})
model = get_peft_model(model, LoraConfig(r=16, lora_alpha=16, lora_dropout=0.05, bias="none", task_type="CAUSAL_LM", target_modules=["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]))
model.print_trainable_parameters()
print(f"{model.get_memory_footprint() / 1e6:.0f} MB")
tok = tokenizer()
data = Dataset.from_dict({"text": [text(100, i) for i in range(1, 33)]}).map(lambda r: tok(r["text"], max_length=128, truncation=True), remove_columns=["text"])
Trainer(model=model, train_dataset=data, data_collator=DataCollatorForLanguageModeling(tok, mlm=False),
        args=TrainingArguments(folder + "-out", per_device_train_batch_size=4, max_steps=4, bf16=True, optim="paged_adamw_8bit", logging_steps=1, max_grad_norm=0.3, warmup_steps=1, report_to=[], save_strategy="no")).train()

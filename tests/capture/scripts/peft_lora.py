# job: {"model": {"preset": "llama-2-7b"}, "training": {"batch_size": 1, "sequence_length": 512, "precision": "bf16", "optimizer": "adamw", "lora": {"rank": 8, "targets": ["q_proj", "v_proj"], "dropout": 0.05, "precision": "bf16"}, "use_cache": false}}
import torch
from peft import LoraConfig, get_peft_model
from transformers import AutoConfig, AutoModelForCausalLM

config = AutoConfig.for_model("llama", hidden_size=4096, intermediate_size=11008, num_hidden_layers=32, num_attention_heads=32, vocab_size=32000, max_position_embeddings=4096)
config.use_cache = False
model = AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16)
model = get_peft_model(model, LoraConfig(r=8, lora_alpha=16, lora_dropout=0.05, target_modules=["q_proj", "v_proj"], task_type="CAUSAL_LM"), autocast_adapter_dtype=False)
model.print_trainable_parameters()
model.cuda().train()
optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], 1e-4)
for step in range(4):
    ids = torch.randint(0, 32000, (1, 512), device="cuda")
    loss = model(input_ids=ids, labels=ids).loss
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    print(step, loss.item())

import bitsandbytes as bnb
import torch
import torch.nn as nn
from peft import LoraConfig, get_peft_model, prepare_model_for_kbit_training
from transformers import AutoModelForCausalLM
from toy import llama

model = AutoModelForCausalLM.from_config(llama(hidden_size=1024, intermediate_size=2816, num_attention_heads=16, num_key_value_heads=16), dtype=torch.bfloat16)
for layer in model.model.layers:  # as transformers' quantizer replaces them
    for part, names in ((layer.self_attn, ("q_proj", "k_proj", "v_proj", "o_proj")), (layer.mlp, ("gate_proj", "up_proj", "down_proj"))):
        for name in names:
            old = getattr(part, name)
            new = bnb.nn.Linear4bit(old.in_features, old.out_features, bias=False, compute_dtype=torch.bfloat16, compress_statistics=True, quant_type="nf4")
            new.weight = bnb.nn.Params4bit(old.weight.data, requires_grad=False, compress_statistics=True, quant_type="nf4")
            setattr(part, name, new)
model = model.to("cuda")
model.is_loaded_in_4bit = True
model = get_peft_model(prepare_model_for_kbit_training(model), LoraConfig(r=8, target_modules=["q_proj", "v_proj"], task_type="CAUSAL_LM"))
opt = bnb.optim.AdamW8bit([p for p in model.parameters() if p.requires_grad], lr=1e-4)
model.train()
for i in range(4):
    ids = torch.randint(0, 1000, (2, 256)).cuda()
    with torch.autocast("cuda", torch.bfloat16):
        loss = model(input_ids=ids, labels=ids).loss
    loss.backward(); opt.step(); opt.zero_grad(); print(loss.item())

import torch
from transformers import AutoModelForCausalLM
from toy import llama

model = AutoModelForCausalLM.from_config(llama(), dtype=torch.float16).eval().to("cuda")
for _ in range(2):
    with torch.inference_mode():
        ids = torch.randint(3, 1000, (4, 64), device="cuda")
        out = model.generate(ids, attention_mask=torch.ones_like(ids), max_new_tokens=16, do_sample=True, top_k=50, top_p=0.95, temperature=0.8)
    print(out.shape)

"""A checkpoint by its name on the hub, which is not on this machine: must end with a sentence that says so and a way out."""
# fails: TinyLlama/TinyLlama-1.1B-Chat-v1.0
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

name = "TinyLlama/TinyLlama-1.1B-Chat-v1.0"
tokenizer = AutoTokenizer.from_pretrained(name)
model = AutoModelForCausalLM.from_pretrained(name, torch_dtype=torch.bfloat16).cuda()
opt = torch.optim.AdamW(model.parameters(), 1e-5)
for i in range(10):
    batch = tokenizer(["hello world"] * 4, return_tensors="pt").to("cuda")
    loss = model(**batch, labels=batch["input_ids"]).loss
    loss.backward(); opt.step(); opt.zero_grad()

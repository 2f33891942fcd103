import torch
from liger_kernel.transformers import apply_liger_kernel_to_llama
from transformers import LlamaForCausalLM
from toy import llama

apply_liger_kernel_to_llama(rope=True, swiglu=True, rms_norm=True, fused_linear_cross_entropy=True)
model = LlamaForCausalLM(llama(vocab_size=32000)).to("cuda", torch.bfloat16)
opt = torch.optim.AdamW(model.parameters(), 1e-4)
for i in range(4):
    ids = torch.randint(0, 32000, (2, 512)).cuda()
    loss = model(input_ids=ids, labels=ids).loss
    loss.backward(); opt.step(); opt.zero_grad(); print(loss.item())

import torch
from diffusers import CogVideoXDPMScheduler, CogVideoXTransformer3DModel
from diffusers.training_utils import cast_training_params
from peft import LoraConfig

model = CogVideoXTransformer3DModel(num_attention_heads=8, attention_head_dim=64, num_layers=3, sample_width=32, sample_height=32, sample_frames=9, text_embed_dim=512, max_text_seq_length=64)
model.requires_grad_(False)
model.to("cuda", dtype=torch.bfloat16)
model.enable_gradient_checkpointing()
model.add_adapter(LoraConfig(r=16, lora_alpha=16, target_modules=["to_k", "to_q", "to_v", "to_out.0"]))
cast_training_params([model], dtype=torch.float32)
scheduler = CogVideoXDPMScheduler()
params = [p for p in model.parameters() if p.requires_grad]
optimizer = torch.optim.AdamW(params, 1e-3, betas=(0.9, 0.95))
for i in range(3):
    video, prompt = torch.randn(1, 3, 16, 32, 32).cuda().to(torch.bfloat16), torch.randn(1, 64, 512).cuda().to(torch.bfloat16)
    noise, steps = torch.randn_like(video), torch.randint(0, 1000, (1,), device="cuda").long()
    noisy = scheduler.add_noise(video, noise, steps)
    with torch.autocast("cuda", torch.bfloat16):
        out = model(hidden_states=noisy, encoder_hidden_states=prompt, timestep=steps, return_dict=False)[0]
        predicted = scheduler.get_velocity(out, noisy, steps)
    weights = 1 / (1 - scheduler.alphas_cumprod.to("cuda")[steps])
    while weights.dim() < predicted.dim():
        weights = weights.unsqueeze(-1)
    loss = torch.mean((weights * (predicted - video) ** 2).reshape(1, -1), dim=1).mean()
    loss.backward()
    torch.nn.utils.clip_grad_norm_(params, 1.0)
    optimizer.step(); optimizer.zero_grad(); print(loss.item())

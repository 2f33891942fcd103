import torch, torch.nn.functional as F
from accelerate import Accelerator
from diffusers import AutoencoderKL, DDPMScheduler, UNet2DConditionModel
from diffusers.optimization import get_scheduler
from diffusers.training_utils import cast_training_params
from peft import LoraConfig
from transformers import CLIPTextConfig, CLIPTextModel

accelerator = Accelerator(mixed_precision="fp16")
unet = UNet2DConditionModel(sample_size=32, cross_attention_dim=768, attention_head_dim=8)
vae = AutoencoderKL(block_out_channels=(128, 256, 512, 512), down_block_types=("DownEncoderBlock2D",) * 4, up_block_types=("UpDecoderBlock2D",) * 4, layers_per_block=2)
text = CLIPTextModel(CLIPTextConfig(hidden_size=768, intermediate_size=3072, num_hidden_layers=12, num_attention_heads=12))
noise_scheduler = DDPMScheduler(num_train_timesteps=1000)
for part in (unet, vae, text):
    part.requires_grad_(False)
    part.to(accelerator.device, dtype=torch.float16)
unet.add_adapter(LoraConfig(r=4, lora_alpha=4, init_lora_weights="gaussian", target_modules=["to_k", "to_q", "to_v", "to_out.0"]))
cast_training_params(unet, dtype=torch.float32)
layers = list(filter(lambda p: p.requires_grad, unet.parameters()))
optimizer = torch.optim.AdamW(layers, lr=1e-4)
rows = [{"pixel_values": torch.randn(3, 256, 256), "input_ids": torch.randint(0, 49000, (77,))} for _ in range(8)]
loader = torch.utils.data.DataLoader(rows, batch_size=2, shuffle=True)
schedule = get_scheduler("constant", optimizer=optimizer, num_warmup_steps=0, num_training_steps=10)
unet, optimizer, loader, schedule = accelerator.prepare(unet, optimizer, loader, schedule)
unet.train()
for batch in loader:
    with accelerator.accumulate(unet):
        latents = vae.encode(batch["pixel_values"].to(dtype=torch.float16)).latent_dist.sample() * vae.config.scaling_factor
        noise = torch.randn_like(latents)
        steps = torch.randint(0, 1000, (latents.shape[0],), device=latents.device).long()
        noisy = noise_scheduler.add_noise(latents, noise, steps)
        states = text(batch["input_ids"], return_dict=False)[0]
        predicted = unet(noisy, steps, states, return_dict=False)[0]
        loss = F.mse_loss(predicted.float(), noise.float(), reduction="mean")
        accelerator.backward(loss)
        accelerator.clip_grad_norm_(layers, 1.0)
        optimizer.step(); schedule.step(); optimizer.zero_grad()
    print(accelerator.gather(loss.repeat(2)).mean().item())

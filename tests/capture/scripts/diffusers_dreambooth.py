import torch, torch.nn.functional as F
from accelerate import Accelerator
from diffusers import DDPMScheduler, UNet2DConditionModel

accelerator = Accelerator(mixed_precision="bf16")
unet = UNet2DConditionModel(sample_size=32, block_out_channels=(128, 256, 256, 256), cross_attention_dim=512, attention_head_dim=8)
unet.enable_gradient_checkpointing()
unet.train()
optimizer = torch.optim.AdamW(unet.parameters(), lr=5e-6)
rows = [{"latents": torch.randn(4, 32, 32), "prior": torch.randn(4, 32, 32), "prompt": torch.randn(77, 512)} for _ in range(8)]
def collate(examples):
    stack = lambda key: torch.stack([e[key] for e in examples])
    return {"latents": torch.cat([stack("latents"), stack("prior")]), "prompt": stack("prompt").repeat(2, 1, 1)}
loader = torch.utils.data.DataLoader(rows, batch_size=2, collate_fn=collate)
scheduler = DDPMScheduler(beta_schedule="scaled_linear")
unet, optimizer, loader = accelerator.prepare(unet, optimizer, loader)
for batch in loader:
    with accelerator.accumulate(unet):
        noise = torch.randn_like(batch["latents"])
        steps = torch.randint(0, scheduler.config.num_train_timesteps, (noise.shape[0],), device=noise.device)
        predicted = unet(scheduler.add_noise(batch["latents"], noise, steps), steps, batch["prompt"]).sample
        mine, prior = torch.chunk(predicted, 2, dim=0)
        target, target_prior = torch.chunk(noise, 2, dim=0)
        loss = F.mse_loss(mine.float(), target.float()) + 1.0 * F.mse_loss(prior.float(), target_prior.float())
        accelerator.backward(loss)
        if accelerator.sync_gradients:
            accelerator.clip_grad_norm_(unet.parameters(), 1.0)
        optimizer.step(); optimizer.zero_grad(set_to_none=True)
    print(loss.detach().item())

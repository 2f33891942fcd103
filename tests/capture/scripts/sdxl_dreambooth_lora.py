"""DreamBooth LoRA in the shape of diffusers' SDXL script: two text encoders, an autoencoder, min-SNR weights, EMA of the adapters."""
import itertools, math
import torch, torch.nn.functional as F
from accelerate import Accelerator
from accelerate.utils import ProjectConfiguration, set_seed
from diffusers import AutoencoderKL, DDPMScheduler, UNet2DConditionModel
from diffusers.optimization import get_scheduler
from diffusers.training_utils import cast_training_params, compute_snr
from peft import LoraConfig
from peft.utils import get_peft_model_state_dict
from transformers import CLIPTextConfig, CLIPTextModel, CLIPTextModelWithProjection

accelerator = Accelerator(gradient_accumulation_steps=2, mixed_precision="fp16", project_config=ProjectConfiguration(project_dir="/tmp/memfathom-capture-out"))
set_seed(0)
small = dict(vocab_size=1000, hidden_size=128, intermediate_size=256, num_hidden_layers=3, num_attention_heads=4, max_position_embeddings=77, eos_token_id=999, bos_token_id=998)
one, two = CLIPTextModel(CLIPTextConfig(**small)), CLIPTextModelWithProjection(CLIPTextConfig(**small, projection_dim=128))
vae = AutoencoderKL(block_out_channels=(32, 64, 64, 64), down_block_types=("DownEncoderBlock2D",) * 4, up_block_types=("UpDecoderBlock2D",) * 4, latent_channels=4, norm_num_groups=16)
unet = UNet2DConditionModel(sample_size=32, block_out_channels=(64, 128, 256), down_block_types=("DownBlock2D", "CrossAttnDownBlock2D", "CrossAttnDownBlock2D"), up_block_types=("CrossAttnUpBlock2D", "CrossAttnUpBlock2D", "UpBlock2D"),
                            cross_attention_dim=256, attention_head_dim=(2, 4, 8), transformer_layers_per_block=(1, 2, 2), addition_embed_type="text_time", addition_time_embed_dim=32, projection_class_embeddings_input_dim=128 + 6 * 32, norm_num_groups=16)
noise_scheduler = DDPMScheduler(beta_schedule="scaled_linear", prediction_type="epsilon")
for m in (vae, one, two, unet): m.requires_grad_(False)
weight_dtype = torch.float16
unet.to(accelerator.device, dtype=weight_dtype); vae.to(accelerator.device, dtype=torch.float32)
for m in (one, two): m.to(accelerator.device, dtype=weight_dtype)
unet.enable_gradient_checkpointing()
unet.add_adapter(LoraConfig(r=8, lora_alpha=8, init_lora_weights="gaussian", target_modules=["to_k", "to_q", "to_v", "to_out.0"]))
for m in (one, two): m.add_adapter(LoraConfig(r=4, lora_alpha=4, target_modules=["q_proj", "k_proj", "v_proj", "out_proj"]))
cast_training_params([unet, one, two], dtype=torch.float32)
groups = [list(filter(lambda p: p.requires_grad, m.parameters())) for m in (unet, one, two)]
optimizer = torch.optim.AdamW([{"params": groups[0], "lr": 1e-4}, {"params": groups[1] + groups[2], "lr": 5e-6}], weight_decay=1e-4, eps=1e-8)

class DreamBooth(torch.utils.data.Dataset):
    def __len__(self): return 16
    def __getitem__(self, i):
        return {"pixels": torch.rand(3, 256, 256) * 2 - 1, "ids": torch.randint(0, 998, (77,)), "size": torch.tensor([256, 256, 0, 0, 256, 256])}

loader = torch.utils.data.DataLoader(DreamBooth(), batch_size=2, shuffle=True)
lr_scheduler = get_scheduler("constant", optimizer=optimizer, num_warmup_steps=0, num_training_steps=100)
unet, one, two, optimizer, loader, lr_scheduler = accelerator.prepare(unet, one, two, optimizer, loader, lr_scheduler)
for epoch in range(2):
    unet.train(); one.train(); two.train()
    for step, batch in enumerate(loader):
        with accelerator.accumulate(unet, one, two):
            latents = vae.encode(batch["pixels"].to(vae.dtype)).latent_dist.sample() * vae.config.scaling_factor
            latents = latents.to(weight_dtype)
            noise = torch.randn_like(latents) + 0.05 * torch.randn(latents.shape[0], latents.shape[1], 1, 1, device=latents.device, dtype=latents.dtype)
            t = torch.randint(0, noise_scheduler.config.num_train_timesteps, (latents.shape[0],), device=latents.device).long()
            noisy = noise_scheduler.add_noise(latents, noise, t)
            a = one(batch["ids"], output_hidden_states=True, return_dict=False)[-1][-2]
            b = two(batch["ids"], output_hidden_states=True)
            pred = unet(noisy, t, torch.cat([a, b.hidden_states[-2]], -1).to(weight_dtype), added_cond_kwargs={"text_embeds": b.text_embeds, "time_ids": batch["size"]}).sample
            snr = compute_snr(noise_scheduler, t)
            weights = torch.stack([snr, 5.0 * torch.ones_like(t)], dim=1).min(dim=1)[0] / snr
            loss = (F.mse_loss(pred.float(), noise.float(), reduction="none").mean(dim=list(range(1, 4))) * weights).mean()
            accelerator.backward(loss)
            if accelerator.sync_gradients:
                accelerator.clip_grad_norm_(itertools.chain(*groups), 1.0)
            optimizer.step(); lr_scheduler.step(); optimizer.zero_grad()
        if accelerator.is_main_process: accelerator.log({"loss": loss.detach().item()}, step=step)

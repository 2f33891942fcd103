"""CogVideoX image-to-video LoRA: the causal 3D autoencoder encodes the clip in slices, rotary embeddings, noised image condition."""
import math
import torch
from diffusers import AutoencoderKLCogVideoX, CogVideoXDPMScheduler, CogVideoXTransformer3DModel
from diffusers.models.embeddings import get_3d_rotary_pos_embed
from diffusers.utils.torch_utils import is_compiled_module
from peft import LoraConfig
from transformers import T5Config, T5EncoderModel

dtype, device = torch.bfloat16, "cuda"
text = T5EncoderModel(T5Config(vocab_size=1000, d_model=256, d_ff=512, num_layers=4, num_heads=4, d_kv=64)).to(device, dtype).requires_grad_(False)
vae = AutoencoderKLCogVideoX(block_out_channels=(32, 64, 64, 64), layers_per_block=1, norm_num_groups=16, latent_channels=8).to(device, dtype).requires_grad_(False)
vae.enable_slicing(); vae.enable_tiling()
model = CogVideoXTransformer3DModel(num_attention_heads=4, attention_head_dim=64, num_layers=3, in_channels=16, out_channels=8, sample_width=32, sample_height=32, sample_frames=9, text_embed_dim=256, max_text_seq_length=32, use_rotary_positional_embeddings=True)
model.to(device, dtype).requires_grad_(False)
model.enable_gradient_checkpointing()
model.add_adapter(LoraConfig(r=8, lora_alpha=8, target_modules=["to_k", "to_q", "to_v", "to_out.0"]))
for p in model.parameters():
    if p.requires_grad: p.data = p.to(torch.float32)
scheduler = CogVideoXDPMScheduler(prediction_type="v_prediction")
trained = list(filter(lambda p: p.requires_grad, model.parameters()))
optimizer = torch.optim.AdamW(trained, lr=1e-3)
cached = []
with torch.no_grad():
    for i in range(4):
        clip = (torch.rand(1, 9, 3, 128, 128) * 2 - 1).to(device, dtype).permute(0, 2, 1, 3, 4)
        latent = vae.encode(clip).latent_dist
        image = clip[:, :, :1] + torch.exp(torch.normal(-3.0, 0.5, size=(1,), device=device)).to(dtype)[:, None, None, None, None] * torch.randn_like(clip[:, :, :1])
        cached.append((latent, vae.encode(image).latent_dist, text(torch.randint(0, 1000, (1, 32), device=device))[0]))
del vae, text
torch.cuda.empty_cache()
for latent, image, prompt in cached:
    x = latent.sample().permute(0, 2, 1, 3, 4) * 0.7
    condition = image.sample().permute(0, 2, 1, 3, 4) * 0.7
    condition = torch.cat([condition, condition.new_zeros(1, x.shape[1] - 1, *condition.shape[2:])], dim=1)
    noise = torch.randn_like(x); steps = torch.randint(0, scheduler.config.num_train_timesteps, (1,), device=x.device).long()
    noisy = torch.cat([scheduler.add_noise(x, noise, steps), condition], dim=2)
    rotary = get_3d_rotary_pos_embed(64, ((0, 0), (x.shape[3] // 2, x.shape[4] // 2)), (x.shape[3] // 2, x.shape[4] // 2), x.shape[1], device=device)
    with torch.autocast("cuda", dtype):
        out = model(hidden_states=noisy, encoder_hidden_states=prompt, timestep=steps, image_rotary_emb=rotary, return_dict=False)[0]
        pred = scheduler.get_velocity(out, noisy[:, :, :8], steps)
    w = 1 / (1 - scheduler.alphas_cumprod.to(device)[steps])
    loss = (w.view(-1, 1, 1, 1, 1) * (pred - x) ** 2).reshape(1, -1).mean(1).mean()
    loss.backward()
    total = torch.norm(torch.stack([torch.norm(p.grad.detach(), 2) for p in trained]), 2)
    if not math.isfinite(total.item()): raise FloatingPointError("gradients overflow")
    optimizer.step(); optimizer.zero_grad(set_to_none=True); print(f"{loss.item():.3f} {total:.3f}")

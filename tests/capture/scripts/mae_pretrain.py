"""Masked autoencoder: random masking by argsort of noise, gather and mask tokens, accumulation of four with NativeScaler as a class, patches by einsum."""
import math
from functools import partial
import torch
from torch import nn, inf

class NativeScalerWithGradNormCount:
    def __init__(self):
        self._scaler = torch.cuda.amp.GradScaler()
    def __call__(self, loss, optimizer, clip_grad=None, parameters=None, create_graph=False, update_grad=True):
        self._scaler.scale(loss).backward(create_graph=create_graph)
        if not update_grad:
            return None
        self._scaler.unscale_(optimizer)
        norm = torch.nn.utils.clip_grad_norm_(parameters, clip_grad) if clip_grad is not None else get_grad_norm_(parameters)
        self._scaler.step(optimizer)
        self._scaler.update()
        return norm

def get_grad_norm_(parameters, norm_type=2.0):
    parameters = [p for p in parameters if p.grad is not None]
    device = parameters[0].grad.device
    return torch.norm(torch.stack([torch.norm(p.grad.detach(), norm_type).to(device) for p in parameters]), norm_type)

class Block(nn.Module):
    def __init__(self, dim, heads, norm):
        super().__init__()
        self.n1, self.n2, self.heads = norm(dim), norm(dim), heads
        self.qkv, self.proj, self.mlp = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim), nn.Sequential(nn.Linear(dim, 4 * dim), nn.GELU(), nn.Linear(4 * dim, dim))
    def forward(self, x):
        b, n, c = x.shape
        q, k, v = self.qkv(self.n1(x)).reshape(b, n, 3, self.heads, c // self.heads).permute(2, 0, 3, 1, 4).unbind(0)
        attn = ((q * (c // self.heads) ** -.5) @ k.transpose(-2, -1)).softmax(dim=-1)
        x = x + self.proj((attn @ v).transpose(1, 2).reshape(b, n, c))
        return x + self.mlp(self.n2(x))

class MAE(nn.Module):
    def __init__(self, size=96, patch=8, dim=192, depth=4, heads=6, ddim=128, ddepth=2):
        super().__init__()
        norm, n = partial(nn.LayerNorm, eps=1e-6), (size // patch) ** 2
        self.patch, self.embed = patch, nn.Conv2d(3, dim, patch, patch)
        self.cls, self.pos = nn.Parameter(torch.zeros(1, 1, dim)), nn.Parameter(torch.zeros(1, n + 1, dim), requires_grad=False)
        self.blocks, self.norm = nn.ModuleList([Block(dim, heads, norm) for _ in range(depth)]), norm(dim)
        self.dembed, self.mask_token, self.dpos = nn.Linear(dim, ddim), nn.Parameter(torch.zeros(1, 1, ddim)), nn.Parameter(torch.zeros(1, n + 1, ddim), requires_grad=False)
        self.dblocks, self.dnorm, self.pred = nn.ModuleList([Block(ddim, 4, norm) for _ in range(ddepth)]), norm(ddim), nn.Linear(ddim, patch ** 2 * 3)
    def patchify(self, x):
        p, h = self.patch, x.shape[2] // self.patch
        return torch.einsum("nchpwq->nhwpqc", x.reshape(x.shape[0], 3, h, p, h, p)).reshape(x.shape[0], h * h, p * p * 3)
    def forward(self, imgs, ratio=0.75):
        x = self.embed(imgs).flatten(2).transpose(1, 2) + self.pos[:, 1:]
        n, l, d = x.shape
        keep = int(l * (1 - ratio))
        noise = torch.rand(n, l, device=x.device)
        shuffle = torch.argsort(noise, dim=1)
        restore = torch.argsort(shuffle, dim=1)
        x = torch.gather(x, 1, shuffle[:, :keep].unsqueeze(-1).repeat(1, 1, d))
        mask = torch.ones([n, l], device=x.device)
        mask[:, :keep] = 0
        mask = torch.gather(mask, 1, restore)
        x = torch.cat(((self.cls + self.pos[:, :1]).expand(n, -1, -1), x), 1)
        for b in self.blocks:
            x = b(x)
        x = self.dembed(self.norm(x))
        tokens = self.mask_token.repeat(n, restore.shape[1] + 1 - x.shape[1], 1)
        x_ = torch.gather(torch.cat([x[:, 1:], tokens], 1), 1, restore.unsqueeze(-1).repeat(1, 1, x.shape[2]))
        x = torch.cat([x[:, :1], x_], 1) + self.dpos
        for b in self.dblocks:
            x = b(x)
        pred, target = self.pred(self.dnorm(x))[:, 1:], self.patchify(imgs)
        target = (target - target.mean(-1, keepdim=True)) / (target.var(-1, keepdim=True) + 1e-6) ** .5
        return (((pred - target) ** 2).mean(-1) * mask).sum() / mask.sum()

model = MAE().cuda()
opt, scaler, accum = torch.optim.AdamW(model.parameters(), lr=1.5e-4, betas=(0.9, 0.95)), NativeScalerWithGradNormCount(), 4
opt.zero_grad()
for it in range(32):
    x = torch.randn(16, 3, 96, 96).to("cuda", non_blocking=True)
    with torch.amp.autocast("cuda"):
        loss = model(x)
    value = loss.item()
    if not math.isfinite(value):
        raise SystemExit(1)
    norm = scaler(loss / accum, opt, parameters=model.parameters(), update_grad=(it + 1) % accum == 0)
    if (it + 1) % accum == 0:
        opt.zero_grad()
    torch.cuda.synchronize()
    print(it, value, norm)

"""DDPM by hand: a U-Net with attention and time embeddings, class dropout for guidance, EMA, and every third step a grid of sixteen samples by fifty denoising steps."""
import copy, math
import torch, torch.nn as nn, torch.nn.functional as F

class SinusoidalPositionEmbeddings(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.dim = dim
    def forward(self, time):
        half = self.dim // 2
        e = torch.exp(torch.arange(half, device=time.device) * -(math.log(10000) / (half - 1)))
        e = time[:, None] * e[None, :]
        return torch.cat((e.sin(), e.cos()), dim=-1)

class ResBlock(nn.Module):
    def __init__(self, i, o, t):
        super().__init__()
        self.mlp, self.b1, self.b2 = nn.Linear(t, o), nn.Sequential(nn.GroupNorm(8, i), nn.SiLU(), nn.Conv2d(i, o, 3, 1, 1)), nn.Sequential(nn.GroupNorm(8, o), nn.SiLU(), nn.Conv2d(o, o, 3, 1, 1))
        self.res = nn.Conv2d(i, o, 1) if i != o else nn.Identity()
    def forward(self, x, t):
        return self.b2(self.b1(x) + self.mlp(F.silu(t))[:, :, None, None]) + self.res(x)

class LinearAttention(nn.Module):
    def __init__(self, c, heads=4, d=16):
        super().__init__()
        self.heads, self.qkv, self.out = heads, nn.Conv2d(c, 3 * heads * d, 1, bias=False), nn.Conv2d(heads * d, c, 1)
    def forward(self, x):
        b, c, h, w = x.shape
        q, k, v = (t.reshape(b, self.heads, -1, h * w) for t in self.qkv(x).chunk(3, 1))
        context = torch.einsum("bhdn,bhen->bhde", k.softmax(-1), v)
        return x + self.out(torch.einsum("bhde,bhdn->bhen", context, q.softmax(-2)).reshape(b, -1, h, w))

class UNet(nn.Module):
    def __init__(self, c=32, classes=10):
        super().__init__()
        t = 4 * c
        self.time, self.label = nn.Sequential(SinusoidalPositionEmbeddings(c), nn.Linear(c, t), nn.GELU(), nn.Linear(t, t)), nn.Embedding(classes + 1, t)
        self.inp = nn.Conv2d(3, c, 3, 1, 1)
        self.d1, self.down1, self.d2, self.down2 = ResBlock(c, c, t), nn.Conv2d(c, 2 * c, 4, 2, 1), ResBlock(2 * c, 2 * c, t), nn.Conv2d(2 * c, 4 * c, 4, 2, 1)
        self.m1, self.attn, self.m2 = ResBlock(4 * c, 4 * c, t), LinearAttention(4 * c), ResBlock(4 * c, 4 * c, t)
        self.up1, self.u1, self.up2, self.u2 = nn.ConvTranspose2d(4 * c, 2 * c, 4, 2, 1), ResBlock(4 * c, 2 * c, t), nn.ConvTranspose2d(2 * c, c, 4, 2, 1), ResBlock(2 * c, c, t)
        self.out = nn.Conv2d(c, 3, 1)
    def forward(self, x, t, y):
        t = self.time(t) + self.label(y)
        a = self.d1(self.inp(x), t)
        b = self.d2(self.down1(a), t)
        m = self.m2(self.attn(self.m1(self.down2(b), t)), t)
        m = self.u1(torch.cat((self.up1(m), b), 1), t)
        return self.out(self.u2(torch.cat((self.up2(m), a), 1), t))

T, device = 50, "cuda"
betas = torch.linspace(1e-4, .02, T, device=device)
alphas, bar = 1 - betas, torch.cumprod(1 - betas, 0)
prev = F.pad(bar[:-1], (1, 0), value=1.0)
extract = lambda a, t, shape: a.gather(-1, t).reshape(t.shape[0], *((1,) * (len(shape) - 1)))
model = UNet().to(device)
ema = copy.deepcopy(model).eval().requires_grad_(False)
opt = torch.optim.Adam(model.parameters(), lr=1e-3)

@torch.no_grad()
def sample(net, n=16):
    x, y, frames = torch.randn(n, 3, 32, 32, device=device), torch.arange(n, device=device) % 10, []
    for i in reversed(range(T)):
        t = torch.full((n,), i, device=device, dtype=torch.long)
        cond, uncond = net(x, t, y), net(x, t, torch.full_like(y, 10))
        eps = uncond + 3.0 * (cond - uncond)
        x = (x - extract(betas, t, x.shape) / (1 - extract(bar, t, x.shape)).sqrt() * eps) / extract(alphas, t, x.shape).sqrt()
        if i > 0:
            x = x + (extract(betas * (1 - prev) / (1 - bar), t, x.shape)).sqrt() * torch.randn_like(x)
        frames.append(x.cpu().numpy())
    return frames

for step in range(7):
    x, y = torch.rand(48, 3, 32, 32).to(device) * 2 - 1, torch.randint(10, (48,)).to(device)
    t = torch.randint(0, T, (48,), device=device).long()
    y[torch.rand(48, device=device) < 0.1] = 10
    noise = torch.randn_like(x)
    noisy = extract(bar, t, x.shape).sqrt() * x + (1 - extract(bar, t, x.shape)).sqrt() * noise
    loss = F.smooth_l1_loss(noise, model(noisy, t, y))
    opt.zero_grad(); loss.backward(); opt.step()
    with torch.no_grad():
        for e, p in zip(ema.parameters(), model.parameters()):
            e.lerp_(p, 1e-3)
    if step and step % 3 == 0:
        frames = sample(ema)
    print(step, "Loss:", loss.item())

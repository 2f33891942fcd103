"""A GAN with lazy regularisation: R1 on the critic, path lengths on the generator, two scalers, a custom operator that is differentiated twice."""
import copy
import torch
from torch import nn, autograd
import torch.nn.functional as F

class Upsample(autograd.Function):
    @staticmethod
    def forward(ctx, x, kernel):
        ctx.kernel, ctx.size = kernel, x.shape
        return F.conv_transpose2d(x.reshape(-1, 1, *x.shape[2:]), kernel, stride=2, padding=1).view(x.shape[0], x.shape[1], 2 * x.shape[2], 2 * x.shape[3])
    @staticmethod
    def backward(ctx, g):
        return Downsample.apply(g, ctx.kernel), None

class Downsample(autograd.Function):
    @staticmethod
    def forward(ctx, x, kernel):
        ctx.kernel = kernel
        return F.conv2d(x.reshape(-1, 1, *x.shape[2:]), kernel, stride=2, padding=1).view(x.shape[0], x.shape[1], x.shape[2] // 2, x.shape[3] // 2)
    @staticmethod
    def backward(ctx, g):
        return Upsample.apply(g, ctx.kernel), None

class Modulated(nn.Module):
    def __init__(self, i, o, style=128):
        super().__init__()
        self.weight, self.affine = nn.Parameter(torch.randn(o, i, 3, 3)), nn.Linear(style, i)
        self.noise = nn.Parameter(torch.zeros(()))
    def forward(self, x, w):
        b = x.shape[0]
        weight = self.weight[None] * (self.affine(w) + 1)[:, None, :, None, None]
        weight = weight * (weight.square().sum((2, 3, 4), keepdim=True) + 1e-8).rsqrt()
        x = F.conv2d(x.reshape(1, -1, *x.shape[2:]), weight.flatten(0, 1).to(x.dtype), padding=1, groups=b).view(b, -1, *x.shape[2:])
        return F.leaky_relu(x + self.noise * torch.randn(b, 1, *x.shape[2:], device=x.device), 0.2)

class Generator(nn.Module):
    def __init__(self, c=64):
        super().__init__()
        self.mapping = nn.Sequential(*[m for _ in range(4) for m in (nn.Linear(128, 128), nn.LeakyReLU(0.2))])
        self.start = nn.Parameter(torch.randn(1, c, 4, 4))
        self.layers = nn.ModuleList(Modulated(c, c) for _ in range(5))
        self.rgb = nn.Conv2d(c, 3, 1)
        self.register_buffer("kernel", torch.ones(1, 1, 4, 4) / 4)
    def forward(self, z):
        w = self.mapping(z); x = self.start.expand(len(z), -1, -1, -1)
        for layer in self.layers[:-1]: x = Upsample.apply(layer(x, w), self.kernel)
        return self.rgb(self.layers[-1](x, w)), w

critic = nn.Sequential(nn.utils.spectral_norm(nn.Conv2d(3, 64, 4, 2, 1)), nn.LeakyReLU(0.2), nn.utils.parametrizations.spectral_norm(nn.Conv2d(64, 128, 4, 2, 1)), nn.LeakyReLU(0.2), nn.Conv2d(128, 256, 4, 2, 1), nn.LeakyReLU(0.2), nn.Flatten(), nn.Linear(256 * 64, 1)).cuda()
g = Generator().cuda(); g_ema = copy.deepcopy(g).eval().requires_grad_(False)
og, od = torch.optim.Adam(g.parameters(), 2e-3, betas=(0.0, 0.99)), torch.optim.Adam(critic.parameters(), 2e-3, betas=(0.0, 0.99))
sg, sd = torch.amp.GradScaler("cuda"), torch.cuda.amp.GradScaler()
mean_path = torch.zeros([], device="cuda")
for step in range(5):
    real = torch.rand(8, 3, 64, 64).cuda() * 2 - 1
    with torch.autocast("cuda"):
        fake, _ = g(torch.randn(8, 128, device="cuda"))
        loss_d = F.softplus(critic(fake.detach())).mean() + F.softplus(-critic(real)).mean()
    od.zero_grad(); sd.scale(loss_d).backward()
    if step % 2 == 0:
        real.requires_grad_(True)
        (gr,) = autograd.grad(sd.scale(critic(real).sum()), real, create_graph=True)
        penalty = (gr / sd.get_scale()).square().sum((1, 2, 3)).mean()
        sd.scale(5 * penalty).backward()
    sd.unscale_(od); nn.utils.clip_grad_norm_(critic.parameters(), 10.0); sd.step(od); sd.update()
    with torch.autocast("cuda"):
        fake, w = g(torch.randn(8, 128, device="cuda"))
        loss_g = F.softplus(-critic(fake)).mean()
    og.zero_grad(); sg.scale(loss_g).backward()
    if step % 2 == 0:
        fake, w = g(torch.randn(4, 128, device="cuda"))
        (jw,) = autograd.grad((fake * torch.randn_like(fake) / 64).sum(), w, create_graph=True)
        length = jw.square().sum(1).sqrt(); mean_path = mean_path.lerp(length.mean().detach(), 0.01)
        sg.scale((length - mean_path).square().mean() * 2).backward()
    sg.step(og); sg.update()
    with torch.no_grad():
        for a, b in zip(g_ema.parameters(), g.parameters()): a.lerp_(b, 0.002)
        for a, b in zip(g_ema.buffers(), g.buffers()): a.copy_(b)
    print(step, loss_d.item(), loss_g.item(), mean_path.item())

"""VQGAN training: perceptual distance through a frozen network, an adaptive weight by torch.autograd.grad, and the discriminator only from the fourth step on."""
# later: grows
import torch
from torch import nn
import torch.nn.functional as F

class Res(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.n1, self.c1, self.n2, self.c2 = nn.GroupNorm(8, c), nn.Conv2d(c, c, 3, 1, 1), nn.GroupNorm(8, c), nn.Conv2d(c, c, 3, 1, 1)
    def forward(self, x):
        h = self.c1(F.silu(self.n1(x)))
        return x + self.c2(F.silu(self.n2(h)))

class Quantizer(nn.Module):
    def __init__(self, n=256, d=32, beta=.25):
        super().__init__()
        self.embedding, self.beta = nn.Embedding(n, d), beta
        self.embedding.weight.data.uniform_(-1 / n, 1 / n)
    def forward(self, z):
        z = z.permute(0, 2, 3, 1).contiguous()
        flat = z.view(-1, z.shape[-1])
        d = flat.pow(2).sum(1, keepdim=True) + self.embedding.weight.pow(2).sum(1) - 2 * flat @ self.embedding.weight.t()
        idx = torch.argmin(d, dim=1)
        q = self.embedding(idx).view(z.shape)
        loss = self.beta * torch.mean((q.detach() - z) ** 2) + torch.mean((q - z.detach()) ** 2)
        one = F.one_hot(idx, 256).type(z.dtype)
        avg = one.mean(0)
        return (z + (q - z).detach()).permute(0, 3, 1, 2).contiguous(), loss, torch.exp(-torch.sum(avg * torch.log(avg + 1e-10)))

class AE(nn.Module):
    def __init__(self, c=32):
        super().__init__()
        self.enc = nn.Sequential(nn.Conv2d(3, c, 3, 1, 1), Res(c), nn.Conv2d(c, 2 * c, 4, 2, 1), Res(2 * c), nn.Conv2d(2 * c, 32, 4, 2, 1))
        self.q = Quantizer()
        self.dec = nn.Sequential(nn.Conv2d(32, 2 * c, 3, 1, 1), Res(2 * c), nn.Upsample(scale_factor=2), nn.Conv2d(2 * c, c, 3, 1, 1), Res(c), nn.Upsample(scale_factor=2))
        self.last = nn.Conv2d(c, 3, 3, 1, 1)
    def forward(self, x):
        q, loss, perplexity = self.q(self.enc(x))
        return self.last(self.dec(q)), loss, perplexity

def weights_init(m):
    if isinstance(m, nn.Conv2d): nn.init.normal_(m.weight.data, 0.0, 0.02)
    elif isinstance(m, nn.BatchNorm2d): nn.init.normal_(m.weight.data, 1.0, 0.02); nn.init.constant_(m.bias.data, 0)

disc = nn.Sequential(nn.Conv2d(3, 64, 4, 2, 1), nn.LeakyReLU(.2, True), nn.Conv2d(64, 128, 4, 2, 1, bias=False), nn.BatchNorm2d(128), nn.LeakyReLU(.2, True),
                     nn.Conv2d(128, 256, 4, 1, 1, bias=False), nn.BatchNorm2d(256), nn.LeakyReLU(.2, True), nn.Conv2d(256, 1, 4, 1, 1)).apply(weights_init).cuda()
lpips = nn.Sequential(nn.Conv2d(3, 32, 3, 1, 1), nn.ReLU(), nn.Conv2d(32, 32, 3, 1, 1), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(32, 64, 3, 1, 1), nn.ReLU()).cuda().eval()
for p in lpips.parameters():
    p.requires_grad = False
model = AE().cuda()
opt_g, opt_d = torch.optim.Adam(model.parameters(), 4.5e-6, (.5, .9)), torch.optim.Adam(disc.parameters(), 4.5e-6, (.5, .9))
disc_start = 3
for step in range(8):
    x = (torch.rand(4, 3, 64, 64) * 2 - 1).cuda()
    rec, qloss, ppl = model(x)
    nll = (torch.abs(x - rec) + (lpips(x) - lpips(rec)).pow(2).mean((1, 2, 3), keepdim=True)).mean()
    if step >= disc_start:
        g_loss = -disc(rec).mean()
        nll_grads = torch.autograd.grad(nll, model.last.weight, retain_graph=True)[0]
        g_grads = torch.autograd.grad(g_loss, model.last.weight, retain_graph=True)[0]
        d_weight = torch.clamp(torch.norm(nll_grads) / (torch.norm(g_grads) + 1e-4), 0, 1e4).detach()
        loss = nll + d_weight * 0.8 * g_loss + qloss
    else:
        loss = nll + qloss
    opt_g.zero_grad(); loss.backward(); opt_g.step()
    if step >= disc_start:
        real, fake = disc(x.contiguous().detach()), disc(rec.contiguous().detach())
        d_loss = .5 * (F.relu(1. - real).mean() + F.relu(1. + fake).mean())
        opt_d.zero_grad(); d_loss.backward(); opt_d.step()
    print(step, loss.item(), ppl.item())

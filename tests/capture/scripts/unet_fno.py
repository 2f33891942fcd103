import torch, torch.nn as nn, torch.nn.functional as F

class Spectral(nn.Module):
    def __init__(self, c, modes):
        super().__init__()
        self.modes, self.low, self.high = modes, *(nn.Parameter(torch.rand(c, c, modes, modes, dtype=torch.cfloat) / c**2) for _ in range(2))
    def forward(self, x):
        m, f = self.modes, torch.fft.rfft2(x)
        out = torch.zeros_like(f)
        out[:, :, :m, :m] = torch.einsum("bixy,ioxy->boxy", f[:, :, :m, :m], self.low)
        out[:, :, -m:, :m] = torch.einsum("bixy,ioxy->boxy", f[:, :, -m:, :m], self.high)
        return torch.fft.irfft2(out, s=x.shape[-2:])

class Block(nn.Module):
    def __init__(self, i, o):
        super().__init__()
        self.net = nn.Sequential(nn.Conv2d(i, o, 3, padding=1), nn.GroupNorm(8, o), nn.SiLU(), nn.Conv2d(o, o, 3, padding=1), nn.GroupNorm(8, o), nn.SiLU())
    def forward(self, x): return self.net(x)

class Net(nn.Module):
    def __init__(self, c=32):
        super().__init__()
        self.a, self.b, self.mid, self.fno, self.skip, self.c, self.d, self.out = Block(1, c), Block(c, 2 * c), Block(2 * c, 4 * c), Spectral(4 * c, 12), nn.Conv2d(4 * c, 4 * c, 1), Block(6 * c, 2 * c), Block(3 * c, c), nn.Conv2d(c, 1, 1)
    def forward(self, x):
        a = self.a(x); b = self.b(F.max_pool2d(a, 2)); m = self.mid(F.max_pool2d(b, 2))
        m = F.gelu(self.fno(m) + self.skip(m))
        b = self.c(torch.cat([F.interpolate(m, scale_factor=2, mode="bilinear"), b], 1))
        return self.out(self.d(torch.cat([F.interpolate(b, scale_factor=2, mode="bilinear"), a], 1)))

net = Net().cuda()
opt = torch.optim.AdamW(net.parameters(), 1e-4)
for i in range(3):
    x, y = torch.randn(4, 1, 128, 128).cuda(), torch.randn(4, 1, 128, 128).cuda()
    prediction = net(x)
    spectrum = torch.fft.fft2(prediction - y).abs().mean()
    loss = F.l1_loss(prediction, y) + 0.1 * spectrum
    opt.zero_grad(); loss.backward(); opt.step(); print(i, loss.item())

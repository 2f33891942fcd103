import torch, torch.nn as nn, torch.nn.functional as F
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
torch.set_default_dtype(torch.float32)

def encode(x, bands):
    return torch.cat([x] + [f(2.0**k * x) for k in range(bands) for f in (torch.sin, torch.cos)], -1)

class Field(nn.Module):
    def __init__(self, width=256):
        super().__init__()
        self.first = nn.ModuleList([nn.Linear(63, width)] + [nn.Linear(width, width) if i != 4 else nn.Linear(width + 63, width) for i in range(7)])
        self.sigma, self.feature, self.view, self.rgb = nn.Linear(width, 1), nn.Linear(width, width), nn.Linear(width + 27, width // 2), nn.Linear(width // 2, 3)
    def forward(self, x, d):
        e = h = encode(x, 10)
        for i, layer in enumerate(self.first):
            h = F.relu(layer(h))
            if i == 4: h = torch.cat([e, h], -1) if False else h
            if i == 4: h = torch.cat([e, h], -1)
        return self.rgb(F.relu(self.view(torch.cat([self.feature(h), encode(d, 4)], -1)))).sigmoid(), F.relu(self.sigma(h)).squeeze(-1)

def render(field, origins, directions, depths):
    points = origins[:, None] + directions[:, None] * depths[..., None]
    rgb, sigma = field(points, F.normalize(directions, dim=-1)[:, None].expand_as(points))
    gaps = torch.cat([depths[:, 1:] - depths[:, :-1], torch.full_like(depths[:, :1], 1e10)], -1)
    alpha = 1 - torch.exp(-sigma * gaps)
    weights = alpha * torch.cumprod(torch.cat([torch.ones_like(alpha[:, :1]), 1 - alpha + 1e-10], -1), -1)[:, :-1]
    return (weights[..., None] * rgb).sum(1), weights

def resample(depths, weights, count):
    mids = 0.5 * (depths[:, 1:] + depths[:, :-1])
    pdf = (weights[:, 1:-1] + 1e-5) / (weights[:, 1:-1] + 1e-5).sum(-1, keepdim=True)
    cdf = torch.cat([torch.zeros_like(pdf[:, :1]), pdf.cumsum(-1)], -1)
    u = torch.rand(depths.shape[0], count, device=depths.device)
    above = torch.searchsorted(cdf.contiguous(), u, right=True).clamp(max=mids.shape[1] - 1)
    return torch.sort(torch.cat([depths, torch.gather(mids, 1, above)], -1), -1).values

coarse, fine = Field().to(device), Field().to(device)
optimizer = torch.optim.Adam(list(coarse.parameters()) + list(fine.parameters()), lr=5e-4)
for i in range(3):
    o, d, gold = (torch.randn(1024, 3, device=device) for _ in range(3))
    t = torch.linspace(2, 6, 64, device=device).expand(1024, 64)
    a, w = render(coarse, o, d, t + torch.rand_like(t) * 4 / 64)
    b, _ = render(fine, o, d, resample(t, w.detach(), 128))
    loss = F.mse_loss(a, gold) + F.mse_loss(b, gold)
    psnr = -10 * torch.log10(loss)
    optimizer.zero_grad(); loss.backward(); optimizer.step()
    for g in optimizer.param_groups: g["lr"] = 5e-4 * 0.1 ** (i / 1000)
    print(i, psnr.item())
with torch.no_grad():
    image = torch.cat([render(coarse, o[j:j + 256], d[j:j + 256], t[j:j + 256])[0].cpu() for j in range(0, 1024, 256)])

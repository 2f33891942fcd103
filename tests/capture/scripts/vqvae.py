import torch, torch.nn as nn, torch.nn.functional as F
device = "cuda" if torch.cuda.is_available() else "cpu"

class Quantizer(nn.Module):
    """Codebook that follows the encoder by moving averages; dead codes are restarted from the batch."""
    def __init__(self, codes=512, dim=64, decay=0.99):
        super().__init__()
        self.decay = decay
        self.register_buffer("codebook", torch.randn(codes, dim))
        self.register_buffer("count", torch.ones(codes))
        self.register_buffer("total", self.codebook.clone())
    def forward(self, z):
        flat = z.permute(0, 2, 3, 1).reshape(-1, z.shape[1])
        nearest = torch.cdist(flat, self.codebook).argmin(1)
        chosen = F.one_hot(nearest, self.codebook.shape[0]).type_as(flat)
        if self.training:
            with torch.no_grad():
                self.count.mul_(self.decay).add_(chosen.sum(0), alpha=1 - self.decay)
                self.total.mul_(self.decay).add_(chosen.t() @ flat, alpha=1 - self.decay)
                self.codebook.copy_(self.total / self.count.clamp(min=1e-5).unsqueeze(1))
                dead = self.count < 0.1
                if dead.any():
                    self.codebook[dead] = flat[torch.randint(flat.shape[0], (int(dead.sum()),), device=flat.device)]
        quantized = self.codebook[nearest].view(z.shape[0], z.shape[2], z.shape[3], -1).permute(0, 3, 1, 2)
        return z + (quantized - z).detach(), F.mse_loss(z, quantized.detach()), nearest.unique().numel()

encoder = nn.Sequential(nn.Conv2d(3, 64, 4, 2, 1), nn.ReLU(), nn.Conv2d(64, 64, 4, 2, 1), nn.ReLU(), nn.Conv2d(64, 64, 3, 1, 1)).to(device)
decoder = nn.Sequential(nn.ConvTranspose2d(64, 64, 4, 2, 1), nn.ReLU(), nn.ConvTranspose2d(64, 3, 4, 2, 1)).to(device)
quantizer = Quantizer().to(device)
optimizer = torch.optim.Adam([*encoder.parameters(), *decoder.parameters()], 3e-4, amsgrad=True)
for i in range(4):
    x = torch.rand(16, 3, 64, 64, device=device)
    q, commit, used = quantizer(encoder(x))
    loss = F.mse_loss(decoder(q), x) + 0.25 * commit
    optimizer.zero_grad(set_to_none=True); loss.backward(); optimizer.step()
    print(f"{i} {loss:.4f} codes {used}")

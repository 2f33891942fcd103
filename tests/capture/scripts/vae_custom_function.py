import torch, torch.nn as nn

class Clamp(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.clamp(-1, 1)
    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * (x.abs() <= 1).to(grad.dtype)

class VAE(nn.Module):
    def __init__(self):
        super().__init__()
        self.enc, self.mu, self.logvar, self.dec = nn.Sequential(nn.Flatten(), nn.Linear(3072, 1024), nn.ReLU()), nn.Linear(1024, 64), nn.Linear(1024, 64), nn.Sequential(nn.Linear(64, 1024), nn.ReLU(), nn.Linear(1024, 3072))
        self.register_buffer("seen", torch.zeros((), dtype=torch.long))
    def forward(self, x):
        self.seen += x.shape[0]
        h = self.enc(x); mu, logvar = self.mu(h), self.logvar(h)
        q = torch.distributions.Normal(mu, (0.5 * logvar).exp())
        z = q.rsample()
        kl = torch.distributions.kl_divergence(q, torch.distributions.Normal(torch.zeros_like(mu), torch.ones_like(mu))).sum(1).mean()
        return Clamp.apply(self.dec(z)).view_as(x), kl

torch.set_default_device("cuda")
model = VAE()
opt = torch.optim.NAdam(model.parameters(), 1e-3)
gen = torch.Generator(device="cuda").manual_seed(3)
for i in range(4):
    x = torch.rand(256, 3, 32, 32, generator=gen)
    y, kl = model(x)
    loss = nn.functional.mse_loss(y, x, reduction="none").sum((1, 2, 3)).mean() + kl
    if torch.isnan(loss).any():
        break
    opt.zero_grad(); loss.backward(); opt.step(); print(i, loss.item(), model.seen.item())

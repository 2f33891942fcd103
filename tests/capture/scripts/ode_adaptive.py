"""A neural ODE with an adaptive step by hand: how many stages are kept depends on the error that the network computes, and a fixed point is iterated until it converges."""
# values: loop
import torch
from torch import nn

class Field(nn.Module):
    def __init__(self, dim=64):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(dim + 1, 256), nn.Tanh(), nn.Linear(256, 256), nn.Tanh(), nn.Linear(256, dim))
        self.calls = 0
    def forward(self, t, y):
        self.calls += 1
        return self.net(torch.cat([y, torch.full_like(y[:, :1], float(t))], 1))

def odeint(f, y, t1=1.0, tol=1e-3):
    t, h = 0.0, 0.25
    while t < t1:
        h = min(h, t1 - t)
        k1 = f(t, y)
        k2 = f(t + h / 2, y + h / 2 * k1)
        k3 = f(t + h * 3 / 4, y + h * 3 / 4 * k2)
        new = y + h * (2 / 9 * k1 + 1 / 3 * k2 + 4 / 9 * k3)
        k4 = f(t + h, new)
        error = (h * (-5 / 72 * k1 + 1 / 12 * k2 + 1 / 9 * k3 - 1 / 8 * k4)).abs().max()
        if error < tol or h < 1e-3:
            t, y = t + h, new
        h = h * min(5.0, max(0.2, 0.9 * (tol / (error.item() + 1e-12)) ** (1 / 3)))
    return y

class DEQ(nn.Module):
    def __init__(self, dim=64):
        super().__init__()
        self.lin = nn.Linear(dim, dim)
        self.lin.weight.data.mul_(0.3)
    def forward(self, x, tol=1e-3, limit=30):
        z = torch.zeros_like(x)
        with torch.no_grad():
            for self.iters in range(limit):
                new = torch.tanh(self.lin(z) + x)
                if (new - z).norm() / (1e-5 + new.norm()) < tol:
                    break
                z = new
        return torch.tanh(self.lin(new.requires_grad_()) + x)

field, deq, out = Field().cuda(), DEQ().cuda(), nn.Linear(64, 2).cuda()
opt = torch.optim.Adamax([*field.parameters(), *deq.parameters(), *out.parameters()], 1e-3)
for i in range(6):
    x = torch.randn(512, 64).cuda()
    y = (x[:, 0] > 0).long()
    field.calls = 0
    loss = nn.functional.cross_entropy(out(deq(odeint(field, x))), y)
    opt.zero_grad()
    loss.backward()
    opt.step()
    print(i, "nfe", field.calls, "iters", deq.iters, loss.item())

"""Differentially private SGD as torch.func writes it: one gradient per sample by vmap, clipped, averaged."""
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.func import functional_call, grad, vmap

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
net = nn.Sequential(nn.Conv2d(1, 16, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(16, 32, 3), nn.ReLU(), nn.Flatten(), nn.Linear(32 * 11 * 11, 10)).to(device)
optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)


def loss_of(parameters, x, y):
    return F.cross_entropy(functional_call(net, parameters, (x.unsqueeze(0),)), y.unsqueeze(0))


for step in range(4):
    x, y = torch.randn(64, 1, 28, 28, device=device), torch.randint(0, 10, (64,), device=device)
    parameters = {k: v.detach() for k, v in net.named_parameters()}
    grads = vmap(grad(loss_of), in_dims=(None, 0, 0))(parameters, x, y)
    norms = torch.stack([g.flatten(1).norm(dim=1) for g in grads.values()]).norm(dim=0)
    scale = (1.0 / (norms + 1e-6)).clamp(max=1.0)
    for name, p in net.named_parameters():
        p.grad = torch.einsum("b,b...->...", scale, grads[name]) / 64 + 0.01 * torch.randn_like(p)
    optimizer.step()
    optimizer.zero_grad()

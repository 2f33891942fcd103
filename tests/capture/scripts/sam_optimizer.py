"""Sharpness-aware minimisation: two backward passes per step through a wrapper optimizer, batch-norm statistics frozen in the second."""
import torch
from torch import nn
import torch.nn.functional as F

class SAM(torch.optim.Optimizer):
    def __init__(self, params, base_optimizer, rho=0.05, adaptive=False, **kwargs):
        defaults = dict(rho=rho, adaptive=adaptive, **kwargs)
        super().__init__(params, defaults)
        self.base_optimizer = base_optimizer(self.param_groups, **kwargs)
        self.param_groups = self.base_optimizer.param_groups
        self.defaults.update(self.base_optimizer.defaults)
    @torch.no_grad()
    def first_step(self, zero_grad=False):
        grad_norm = self._grad_norm()
        for group in self.param_groups:
            scale = group["rho"] / (grad_norm + 1e-12)
            for p in group["params"]:
                if p.grad is None: continue
                self.state[p]["old_p"] = p.data.clone()
                p.add_((torch.pow(p, 2) if group["adaptive"] else 1.0) * p.grad * scale.to(p))
        if zero_grad: self.zero_grad()
    @torch.no_grad()
    def second_step(self, zero_grad=False):
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is None: continue
                p.data = self.state[p]["old_p"]
        self.base_optimizer.step()
        if zero_grad: self.zero_grad()
    @torch.no_grad()
    def step(self, closure=None):
        closure = torch.enable_grad()(closure)
        self.first_step(zero_grad=True)
        closure()
        self.second_step()
    def _grad_norm(self):
        device = self.param_groups[0]["params"][0].device
        return torch.norm(torch.stack([((torch.abs(p) if group["adaptive"] else 1.0) * p.grad).norm(p=2).to(device)
                                       for group in self.param_groups for p in group["params"] if p.grad is not None]), p=2)

def disable_running_stats(model):
    for m in model.modules():
        if isinstance(m, nn.BatchNorm2d):
            m.backup_momentum, m.momentum = m.momentum, 0
def enable_running_stats(model):
    for m in model.modules():
        if isinstance(m, nn.BatchNorm2d) and hasattr(m, "backup_momentum"):
            m.momentum = m.backup_momentum

class Wide(nn.Module):
    def __init__(self, i, o, stride):
        super().__init__()
        self.bn1, self.conv1 = nn.BatchNorm2d(i), nn.Conv2d(i, o, 3, stride, 1, bias=False)
        self.bn2, self.conv2 = nn.BatchNorm2d(o), nn.Conv2d(o, o, 3, 1, 1, bias=False)
        self.short = nn.Conv2d(i, o, 1, stride, bias=False)
    def forward(self, x):
        h = F.relu(self.bn1(x))
        return self.conv2(F.relu(self.bn2(self.conv1(h)))) + self.short(h)

model = nn.Sequential(nn.Conv2d(3, 16, 3, 1, 1), Wide(16, 64, 1), Wide(64, 128, 2), Wide(128, 256, 2), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(256, 10)).to("cuda")
optimizer = SAM(model.parameters(), torch.optim.SGD, rho=2.0, adaptive=True, lr=0.1, momentum=0.9, weight_decay=5e-4)
for i in range(8):
    inputs, targets = (b.to("cuda") for b in (torch.randn(16, 3, 32, 32), torch.randint(10, (16,))))
    enable_running_stats(model)
    predictions = model(inputs)
    loss = F.cross_entropy(predictions, targets, label_smoothing=0.1)
    loss.mean().backward()
    optimizer.first_step(zero_grad=True)
    disable_running_stats(model)
    F.cross_entropy(model(inputs), targets, label_smoothing=0.1).mean().backward()
    optimizer.second_step(zero_grad=True)
    with torch.no_grad():
        correct = torch.argmax(predictions.data, 1) == targets
        print(i, loss.item(), correct.sum().item())

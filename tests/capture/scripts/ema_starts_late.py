"""An EMA copy that begins after four steps, and a scheduler of dropout: what the first two steps hold is less than the rest."""
# later: grows
import copy
import torch
import torch.nn as nn

class EMA:
    def __init__(self, model, decay):
        self.module, self.decay = copy.deepcopy(model).eval(), decay
        for p in self.module.parameters():
            p.requires_grad_(False)
    @torch.no_grad()
    def update(self, model):
        for e, m in zip(self.module.state_dict().values(), model.state_dict().values()):
            e.copy_(self.decay * e + (1. - self.decay) * m)

model = nn.Sequential(nn.Linear(512, 2048), nn.GELU(), nn.Linear(2048, 2048), nn.GELU(), nn.Linear(2048, 512)).cuda()
opt = torch.optim.Adam(model.parameters(), 1e-4)
ema, ema_start = None, 4
for step in range(10):
    x = torch.randn(64, 512, device="cuda")
    loss = (model(x) - x).abs().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    if step >= ema_start:
        if ema is None:
            ema = EMA(model, 0.999)
        ema.update(model)
    print(f"{step:4d} {loss.item():.5f}")

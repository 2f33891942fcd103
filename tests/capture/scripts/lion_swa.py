import torch, torch.nn as nn
from torch.optim.swa_utils import AveragedModel, SWALR, update_bn
device = torch.device("cuda:0" if torch.cuda.is_available() else "cpu")

class Lion(torch.optim.Optimizer):
    def __init__(self, params, lr=1e-4, betas=(0.9, 0.99), weight_decay=0.0):
        super().__init__(params, dict(lr=lr, betas=betas, weight_decay=weight_decay))
    @torch.no_grad()
    def step(self, closure=None):
        loss = None
        if closure is not None:
            with torch.enable_grad(): loss = closure()
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is None: continue
                p.data.mul_(1 - group["lr"] * group["weight_decay"])
                state = self.state[p]
                if len(state) == 0: state["exp_avg"] = torch.zeros_like(p, dtype=torch.bfloat16)
                m, (b1, b2) = state["exp_avg"], group["betas"]
                p.add_((m.float() * b1 + p.grad * (1 - b1)).sign_(), alpha=-group["lr"])
                m.mul_(b2).add_(p.grad.to(m.dtype), alpha=1 - b2)
        return loss

def block(i, o): return nn.Sequential(nn.Conv2d(i, o, 3, padding=1, bias=False), nn.BatchNorm2d(o), nn.ReLU(inplace=True))
model = nn.Sequential(block(3, 64), block(64, 128), nn.MaxPool2d(2), block(128, 256), nn.MaxPool2d(2), block(256, 256), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Dropout(0.2), nn.Linear(256, 100)).to(device)
decay = [p for p in model.parameters() if p.ndim > 1]
rest = [p for p in model.parameters() if p.ndim <= 1]
optimizer = Lion([{"params": decay, "weight_decay": 0.1}, {"params": rest}])
averaged, swa = AveragedModel(model, device=device, multi_avg_fn=torch.optim.swa_utils.get_ema_multi_avg_fn(0.99)), SWALR(optimizer, 1e-5)
data = torch.utils.data.TensorDataset(torch.rand(256, 3, 32, 32), torch.randint(0, 100, (256,)))
loader = torch.utils.data.DataLoader(data, 64, shuffle=True, drop_last=True)
for epoch in range(2):
    for x, y in loader:
        x, y = x.to(device), y.to(device)
        def closure():
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(x), y, label_smoothing=0.1)
            loss.backward()
            return loss
        print(optimizer.step(closure).item())
    averaged.update_parameters(model); swa.step()
update_bn(loader, averaged, device=device)

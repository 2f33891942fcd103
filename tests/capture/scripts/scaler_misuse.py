"""AMP as people get it wrong: GradScaler with bfloat16, step without update every time, clipping before unscale, model.half() beside autocast, backward inside the context."""
import torch
import torch.nn as nn
from torch.cuda.amp import GradScaler, autocast

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.f = nn.Sequential(nn.Conv2d(3, 64, 3, padding=1), nn.BatchNorm2d(64), nn.ReLU(inplace=True),
                               nn.Conv2d(64, 128, 3, stride=2, padding=1), nn.BatchNorm2d(128), nn.ReLU(inplace=True),
                               nn.Conv2d(128, 256, 3, stride=2, padding=1), nn.BatchNorm2d(256), nn.ReLU(inplace=True), nn.AdaptiveAvgPool2d(1), nn.Flatten())
        self.head = nn.Linear(256, 100)
    @autocast(dtype=torch.bfloat16)
    def forward(self, x):
        x = self.f(x)
        with autocast(enabled=False):
            return self.head(x.float())

net = Net().cuda()
frozen = nn.Sequential(nn.Conv2d(3, 32, 7, 4, 3), nn.ReLU(), nn.Flatten(), nn.LazyLinear(256)).cuda().half().eval()
criterion = nn.CrossEntropyLoss(label_smoothing=0.1)
optimizer = torch.optim.RMSprop(net.parameters(), lr=1e-3, momentum=0.9, centered=True)
scaler = GradScaler(init_scale=2.**10, growth_interval=2)
scaler2 = torch.amp.GradScaler("cuda", enabled=False)
best = float("inf")
for epoch in range(2):
    for i in range(10):
        x = torch.randn(16, 3, 64, 64).to("cuda:0", non_blocking=True)
        y = torch.randint(100, (16,)).to("cuda:0")
        optimizer.zero_grad()
        with torch.amp.autocast(device_type="cuda", dtype=torch.bfloat16):
            with torch.no_grad():
                target = frozen(x.half())
            loss = criterion(net(x), y)
            loss = loss + (net.f(x) - target).pow(2).mean()
            scaler.scale(loss).backward()
        torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        if i % 2:
            scaler.unscale_(optimizer)
        scaler.step(optimizer)
        scaler.update()
        if loss < best:
            best = loss
        if torch.isnan(loss):
            raise SystemExit("nan")
        print(epoch, i, float(loss), scaler.get_scale())

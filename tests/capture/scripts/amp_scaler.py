import torch, torch.nn as nn, torch.nn.functional as F

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
assert device.type == "cuda"
net = nn.Sequential(nn.Conv2d(3, 64, 3, padding=1), nn.BatchNorm2d(64), nn.ReLU(inplace=True), nn.MaxPool2d(2),
                    nn.Conv2d(64, 128, 3, padding=1), nn.GroupNorm(8, 128), nn.SiLU(), nn.AdaptiveAvgPool2d(1),
                    nn.Flatten(), nn.Dropout(0.1), nn.Linear(128, 10)).to(device)
optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, 1e-2, total_steps=100)
scaler = torch.cuda.amp.GradScaler()
for step in range(10):
    x, y = torch.randn(32, 3, 96, 96).to(device), torch.randint(0, 10, (32,)).to(device)
    optimizer.zero_grad(set_to_none=True)
    with torch.cuda.amp.autocast():
        loss = F.cross_entropy(net(x), y, label_smoothing=0.1)
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
    scaler.step(optimizer)
    scaler.update()
    scheduler.step()
    print(step, float(loss), scaler.get_scale(), torch.cuda.max_memory_allocated() // 2**20)

import torch, torch.nn as nn, torch.nn.functional as F
from torch.func import functional_call
device = "cuda:0" if torch.cuda.is_available() else "cpu"
net = nn.Sequential(*[layer for i in range(4) for layer in (nn.Conv2d(1 if i == 0 else 64, 64, 3, padding=1), nn.BatchNorm2d(64, track_running_stats=False), nn.ReLU(), nn.MaxPool2d(2))],
                    nn.Flatten(), nn.Linear(64, 5)).to(device)
meta = torch.optim.Adam(net.parameters(), 1e-3)
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(meta, 100)
for episode in range(3):
    meta.zero_grad()
    outer = 0.0
    for task in range(4):
        fast = dict(net.named_parameters())
        xs, ys = torch.randn(25, 1, 28, 28).to(device), torch.arange(5).repeat_interleave(5).to(device)
        xq, yq = torch.randn(75, 1, 28, 28).to(device), torch.arange(5).repeat_interleave(15).to(device)
        for inner in range(3):
            loss = F.cross_entropy(functional_call(net, fast, (xs,)), ys)
            grads = torch.autograd.grad(loss, fast.values(), create_graph=True)
            fast = {k: p - 0.01 * g for (k, p), g in zip(fast.items(), grads)}
        logits = functional_call(net, fast, (xq,))
        q = F.cross_entropy(logits, yq)
        (q / 4).backward()
        outer += q.item()
        accuracy = (logits.argmax(1) == yq).float().mean().item()
    meta.step(); schedule.step()
    print(episode, outer / 4, accuracy, schedule.get_last_lr())

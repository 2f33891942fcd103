"""Progressive resizing (fast.ai's trick) and a curriculum of batches: 64 pixels and 32 images first, then 96, then 128; the model changes its head between the stages."""
# later: grows
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

class Images(Dataset):
    def __init__(self, size, n=96):
        self.size, self.n = size, n
    def __len__(self):
        return self.n
    def __getitem__(self, i):
        return torch.rand(3, self.size, self.size), i % 5

def conv(i, o):
    return nn.Sequential(nn.Conv2d(i, o, 3, padding=1, bias=False), nn.BatchNorm2d(o), nn.Mish(inplace=True), nn.AvgPool2d(2))

body = nn.Sequential(conv(3, 16), conv(16, 32), conv(32, 64), nn.AdaptiveMaxPool2d(1), nn.Flatten()).cuda()
for stage, (size, bs, lr) in enumerate([(64, 32, 1e-2), (96, 24, 5e-3), (128, 24, 1e-3)]):
    head = nn.Linear(64, 5).cuda()
    opt = torch.optim.Adam([*body.parameters(), *head.parameters()], lr)
    sched = torch.optim.lr_scheduler.OneCycleLR(opt, lr, steps_per_epoch=96 // bs, epochs=1)
    for x, y in DataLoader(Images(size), bs, shuffle=True, drop_last=True):
        loss = nn.functional.cross_entropy(head(body(x.cuda())), y.cuda())
        loss.backward()
        opt.step(); opt.zero_grad(); sched.step()
    print(f"stage {stage} size {size}: {loss:.3f}")

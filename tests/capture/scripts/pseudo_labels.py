"""Semi-supervised: labelled steps first, then after a warm-up of three steps each step also takes an unlabelled batch seven times as large, masked by confidence."""
# later: grows
import torch
from torch import nn
import torch.nn.functional as F

class WideNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.f = nn.Sequential(nn.Conv2d(3, 32, 3, 1, 1), nn.BatchNorm2d(32), nn.LeakyReLU(.1), nn.Conv2d(32, 64, 3, 2, 1), nn.BatchNorm2d(64), nn.LeakyReLU(.1),
                               nn.Conv2d(64, 128, 3, 2, 1), nn.BatchNorm2d(128), nn.LeakyReLU(.1), nn.AdaptiveAvgPool2d(1), nn.Flatten())
        self.fc = nn.Linear(128, 10)
    def forward(self, x):
        return self.fc(self.f(x))

def interleave(x, size):
    s = list(x.shape)
    return x.reshape([-1, size] + s[1:]).transpose(0, 1).reshape([-1] + s[1:])

net, mu, bs, warmup = WideNet().cuda(), 7, 8, 3
opt = torch.optim.SGD(net.parameters(), lr=.03, momentum=.9, nesterov=True)
for step in range(8):
    x, y = torch.rand(bs, 3, 32, 32), torch.randint(10, (bs,)).cuda()
    if step < warmup:
        loss = F.cross_entropy(net(x.cuda()), y)
    else:
        weak, strong = torch.rand(mu * bs, 3, 32, 32), torch.rand(mu * bs, 3, 32, 32)
        inputs = interleave(torch.cat((x, weak, strong)), 2 * mu + 1).cuda()
        logits = net(inputs)
        lx, (lw, ls) = logits[:bs], logits[bs:].chunk(2)
        prob, target = torch.softmax(lw.detach(), -1).max(-1)
        mask = prob.ge(0.95).float()
        loss = F.cross_entropy(lx, y) + (F.cross_entropy(ls, target, reduction="none") * mask).mean()
        print(f"mask {mask.mean().item():.2f}")
    opt.zero_grad()
    loss.backward()
    opt.step()
    print(step, loss.item())

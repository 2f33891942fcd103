"""A 3-D U-Net on random patches of volumes: deep supervision, Dice and cross-entropy, instance norm, polynomial rate, sliding-window inference with a Gaussian weight after each epoch."""
# later: grows
import itertools
import numpy as np
import torch
from torch import nn
import torch.nn.functional as F

class ConvDropoutNormNonlin(nn.Module):
    def __init__(self, i, o, stride=1):
        super().__init__()
        self.conv, self.instnorm, self.lrelu = nn.Conv3d(i, o, 3, stride, 1, bias=True), nn.InstanceNorm3d(o, affine=True), nn.LeakyReLU(1e-2, inplace=True)
    def forward(self, x):
        return self.lrelu(self.instnorm(self.conv(x)))

class UNet3D(nn.Module):
    def __init__(self, inc=1, classes=3, base=8, depth=3):
        super().__init__()
        widths = [base * 2 ** d for d in range(depth + 1)]
        self.down = nn.ModuleList(nn.Sequential(ConvDropoutNormNonlin(inc if d == 0 else widths[d - 1], w, 1 if d == 0 else 2), ConvDropoutNormNonlin(w, w)) for d, w in enumerate(widths))
        self.up = nn.ModuleList(nn.ConvTranspose3d(widths[d + 1], widths[d], 2, 2, bias=False) for d in reversed(range(depth)))
        self.dec = nn.ModuleList(nn.Sequential(ConvDropoutNormNonlin(2 * widths[d], widths[d]), ConvDropoutNormNonlin(widths[d], widths[d])) for d in reversed(range(depth)))
        self.seg = nn.ModuleList(nn.Conv3d(widths[d], classes, 1, bias=False) for d in reversed(range(depth)))
        self.deep = True
    def forward(self, x):
        skips, outs = [], []
        for d in self.down:
            x = d(x)
            skips.append(x)
        skips.pop()
        for up, dec, seg in zip(self.up, self.dec, self.seg):
            x = dec(torch.cat((up(x), skips.pop()), dim=1))
            outs.append(seg(x))
        return outs[::-1] if self.deep else outs[-1]

def soft_dice(logits, target, smooth=1e-5):
    probs = F.softmax(logits, 1)
    with torch.no_grad():
        onehot = torch.zeros_like(probs)
        onehot.scatter_(1, target.long(), 1)
    axes = tuple(range(2, probs.ndim))
    tp, fp, fn = (probs * onehot).sum(axes), (probs * (1 - onehot)).sum(axes), ((1 - probs) * onehot).sum(axes)
    return -((2 * tp + smooth) / (2 * tp + fp + fn + smooth))[:, 1:].mean()

def deep_loss(outs, target):
    weights = np.array([1 / 2 ** i for i in range(len(outs))]); weights /= weights.sum()
    total = 0
    for w, o in zip(weights, outs):
        t = F.interpolate(target.float(), size=o.shape[2:], mode="nearest")
        total = total + float(w) * (soft_dice(o, t) + F.cross_entropy(o, t[:, 0].long()))
    return total

def sliding(net, volume, patch, overlap=0.5):
    step = [max(1, int(p * (1 - overlap))) for p in patch]
    starts = [list(range(0, s - p + 1, st)) for s, p, st in zip(volume.shape[2:], patch, step)]
    weight = torch.ones(patch, device=volume.device)
    total = torch.zeros((1, 3, *volume.shape[2:]), device=volume.device)
    norm = torch.zeros(volume.shape[2:], device=volume.device)
    for x, y, z in itertools.product(*starts):
        crop = volume[:, :, x:x + patch[0], y:y + patch[1], z:z + patch[2]]
        total[:, :, x:x + patch[0], y:y + patch[1], z:z + patch[2]] += net(crop).softmax(1) * weight
        norm[x:x + patch[0], y:y + patch[1], z:z + patch[2]] += weight
    return (total / norm).argmax(1)

patch, rng = (32, 32, 32), np.random.RandomState(1234)
cases = [(rng.randn(1, 96, 96, 96).astype("float32"), rng.randint(0, 3, (1, 96, 96, 96))) for _ in range(2)]
net = UNet3D().cuda()
opt = torch.optim.SGD(net.parameters(), 1e-2, weight_decay=3e-5, momentum=0.99, nesterov=True)
for epoch in range(2):
    net.train(); net.deep = True
    for it in range(4):
        xs, ys = [], []
        for _ in range(2):
            image, seg = cases[rng.randint(len(cases))]
            lb = [rng.randint(0, s - p + 1) for s, p in zip(image.shape[1:], patch)]
            window = (slice(None), *(slice(l, l + p) for l, p in zip(lb, patch)))
            xs.append(image[window]); ys.append(seg[window])
        data, target = torch.from_numpy(np.stack(xs)).cuda(non_blocking=True), torch.from_numpy(np.stack(ys)).cuda(non_blocking=True)
        opt.zero_grad()
        loss = deep_loss(net(data), target)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(net.parameters(), 12)
        opt.step()
        print(epoch, it, loss.detach().cpu().numpy())
    net.eval(); net.deep = False
    with torch.no_grad():
        pred = sliding(net, torch.from_numpy(cases[0][0])[None].cuda(), patch)
        print("dice", [float((2 * ((pred.cpu().numpy() == c) & (cases[0][1] == c)).sum()) / ((pred.cpu().numpy() == c).sum() + (cases[0][1] == c).sum() + 1e-8)) for c in (1, 2)])
    opt.param_groups[0]["lr"] = 1e-2 * (1 - (epoch + 1) / 2) ** 0.9

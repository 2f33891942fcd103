"""DINO: global and local crops grouped by resolution, a momentum teacher, a centre, a weight-normed head whose last layer is frozen in the first epoch by dropping its gradients."""
import math
import torch, torch.nn as nn, torch.nn.functional as F

class ViT(nn.Module):
    def __init__(self, dim=192, depth=4, heads=3, patch=8, size=64):
        super().__init__()
        self.patch, self.dim = patch, dim
        self.embed = nn.Conv2d(3, dim, patch, patch)
        self.cls, self.pos = nn.Parameter(torch.zeros(1, 1, dim)), nn.Parameter(torch.zeros(1, (size // patch) ** 2 + 1, dim))
        self.blocks = nn.ModuleList([nn.TransformerEncoderLayer(dim, heads, 4 * dim, 0.0, "gelu", batch_first=True, norm_first=True) for _ in range(depth)])
        self.norm = nn.LayerNorm(dim)
    def interpolate(self, n, w, h):
        if n == self.pos.shape[1] - 1:
            return self.pos
        p, size = self.pos[:, 1:], int(math.sqrt(self.pos.shape[1] - 1))
        p = F.interpolate(p.reshape(1, size, size, self.dim).permute(0, 3, 1, 2), scale_factor=(w / self.patch / size, h / self.patch / size), mode="bicubic")
        return torch.cat((self.pos[:, :1], p.permute(0, 2, 3, 1).view(1, -1, self.dim)), 1)
    def forward(self, x):
        b, _, w, h = x.shape
        x = self.embed(x).flatten(2).transpose(1, 2)
        x = torch.cat((self.cls.expand(b, -1, -1), x), 1) + self.interpolate(x.shape[1], w, h)
        for blk in self.blocks:
            x = blk(x)
        return self.norm(x)[:, 0]

class Head(nn.Module):
    def __init__(self, dim, out=8192):
        super().__init__()
        self.mlp = nn.Sequential(nn.Linear(dim, 512), nn.GELU(), nn.Linear(512, 512), nn.GELU(), nn.Linear(512, 128))
        self.last_layer = nn.utils.weight_norm(nn.Linear(128, out, bias=False))
        self.last_layer.weight_g.data.fill_(1)
        self.last_layer.weight_g.requires_grad = False
    def forward(self, x):
        return self.last_layer(F.normalize(self.mlp(x), dim=-1, p=2))

class MultiCrop(nn.Module):
    def __init__(self, backbone, head):
        super().__init__()
        self.backbone, self.head = backbone, head
    def forward(self, x):
        x = x if isinstance(x, list) else [x]
        ends = torch.cumsum(torch.unique_consecutive(torch.tensor([i.shape[-1] for i in x]), return_counts=True)[1], 0)
        start, out = 0, torch.empty(0).to(x[0].device)
        for end in ends:
            out = torch.cat((out, self.backbone(torch.cat(x[start:end]))))
            start = end
        return self.head(out)

class Loss(nn.Module):
    def __init__(self, out, crops):
        super().__init__()
        self.crops = crops
        self.register_buffer("center", torch.zeros(1, out))
    def forward(self, student, teacher):
        student, teacher = (student / 0.1).chunk(self.crops), F.softmax((teacher - self.center) / 0.04, -1).detach().chunk(2)
        total, n = 0, 0
        for iq, q in enumerate(teacher):
            for v in range(len(student)):
                if v == iq:
                    continue
                total, n = total + torch.sum(-q * F.log_softmax(student[v], -1), -1).mean(), n + 1
        self.center = self.center * 0.9 + torch.cat(teacher).mean(0, keepdim=True) * 0.1
        return total / n

student, teacher = MultiCrop(ViT(), Head(192)).cuda(), MultiCrop(ViT(), Head(192)).cuda()
teacher.load_state_dict(student.state_dict())
for p in teacher.parameters():
    p.requires_grad = False
loss_fn, opt, scaler = Loss(8192, 6).cuda(), torch.optim.AdamW(student.parameters()), None
for it in range(8):
    for i, g in enumerate(opt.param_groups):
        g["lr"] = 5e-4 * (it + 1) / 10
    images = [torch.randn(8, 3, 64, 64) for _ in range(2)] + [torch.randn(8, 3, 32, 32) for _ in range(4)]
    images = [im.cuda(non_blocking=True) for im in images]
    t, s = teacher(images[:2]), student(images)
    loss = loss_fn(s, t)
    if not math.isfinite(loss.item()):
        raise SystemExit(1)
    opt.zero_grad()
    loss.backward()
    for n, p in student.named_parameters():
        if p.grad is not None:
            norm = p.grad.data.norm(2)
            coef = 3.0 / (norm + 1e-6)
            if coef < 1:
                p.grad.data.mul_(coef)
    for n, p in student.named_parameters():
        if "last_layer" in n and it < 4:
            p.grad = None
    opt.step()
    with torch.no_grad():
        for q, k in zip(student.parameters(), teacher.parameters()):
            k.data.mul_(0.996).add_((1 - 0.996) * q.detach().data)
    print(it, loss.item())

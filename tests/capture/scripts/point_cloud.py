"""Point clouds: farthest points, neighbours, scatter, voxels with unique, Chamfer distance, a custom chunked loss."""
import torch
from torch import nn

def farthest(points, count):
    b, n, _ = points.shape
    chosen = torch.zeros(b, count, dtype=torch.long, device=points.device)
    distance = torch.full((b, n), 1e10, device=points.device)
    last = torch.randint(0, n, (b,), device=points.device)
    rows = torch.arange(b, device=points.device)
    for i in range(count):
        chosen[:, i] = last
        d = (points - points[rows, last][:, None]).square().sum(-1)
        distance = torch.minimum(distance, d)
        last = distance.max(-1)[1]
    return chosen

def gather(points, index):
    return points.gather(1, index.flatten(1)[..., None].expand(-1, -1, points.shape[-1])).view(*index.shape, -1)

class SetAbstraction(nn.Module):
    def __init__(self, count, k, i, o):
        super().__init__()
        self.count, self.k = count, k
        self.mlp = nn.Sequential(nn.Conv2d(i + 3, o, 1), nn.BatchNorm2d(o), nn.ReLU(), nn.Conv2d(o, o, 1), nn.BatchNorm2d(o), nn.ReLU())
    def forward(self, xyz, features):
        centers = gather(xyz, farthest(xyz.detach(), self.count))
        near = torch.cdist(centers, xyz).topk(self.k, dim=-1, largest=False).indices
        grouped = torch.cat([gather(xyz, near) - centers[:, :, None], gather(features, near)], -1).permute(0, 3, 1, 2)
        return centers, self.mlp(grouped).amax(-1).transpose(1, 2)

class Voxels(nn.Module):
    def __init__(self, width=64):
        super().__init__()
        self.lift, self.mix = nn.Linear(3, width), nn.Linear(width, width)
    def forward(self, xyz):
        flat = xyz.reshape(-1, 3)
        cells, inverse, counts = torch.unique((flat * 8).floor().long(), dim=0, return_inverse=True, return_counts=True)
        summed = torch.zeros(len(cells), 64, device=xyz.device).index_add_(0, inverse, self.lift(flat))
        mean = summed / counts[:, None]
        pooled = torch.zeros_like(mean).scatter_reduce(0, inverse[:, None].expand(-1, 64), self.lift(flat), "amax", include_self=False)
        return self.mix(mean + pooled)[inverse].view(*xyz.shape[:2], -1)

def chamfer(a, b):
    d = torch.cdist(a, b)
    return d.min(1).values.mean() + d.min(2).values.mean()

torch.backends.cudnn.benchmark = True
net = nn.ModuleDict({"voxels": Voxels(), "one": SetAbstraction(256, 16, 64, 128), "two": SetAbstraction(64, 16, 128, 256), "head": nn.Linear(256, 3 * 16)}).to("cuda")
optimizer = torch.optim.RAdam(net.parameters(), 1e-3, decoupled_weight_decay=True)
for step in range(4):
    cloud = torch.rand(8, 1024, 3).to("cuda")
    xyz, f = net["one"](cloud, net["voxels"](cloud))
    xyz, f = net["two"](xyz, f)
    guess = (xyz[:, :, None] + net["head"](f).view(8, 64, 16, 3)).flatten(1, 2)
    histogram = torch.histc(guess.detach(), bins=16, min=0, max=1)
    bins = torch.bucketize(guess.detach()[..., 0].contiguous(), torch.linspace(0, 1, 17, device="cuda"))
    loss = chamfer(guess, cloud) + 0.01 * guess.var(1).mean()
    optimizer.zero_grad(); loss.backward(); optimizer.step()
    print(step, loss.item(), histogram.argmax().item(), bins.max().item())

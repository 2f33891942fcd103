"""SimCLR on four GPUs: a differentiable all_gather, NT-Xent with masks, LARS by hand, a linear probe trained online, SyncBatchNorm, a cosine schedule."""
# world: 4
import os
import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, Dataset
from torch.utils.data.distributed import DistributedSampler

class GatherLayer(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        output = [torch.zeros_like(x) for _ in range(dist.get_world_size())]
        dist.all_gather(output, x)
        return tuple(output)
    @staticmethod
    def backward(ctx, *grads):
        all_gradients = torch.stack(grads)
        dist.all_reduce(all_gradients)
        return all_gradients[dist.get_rank()]

class LARS(torch.optim.Optimizer):
    def __init__(self, params, lr, weight_decay=1e-6, momentum=0.9, eta=0.001):
        super().__init__(params, dict(lr=lr, weight_decay=weight_decay, momentum=momentum, eta=eta))
    @torch.no_grad()
    def step(self):
        for g in self.param_groups:
            for p in g["params"]:
                dp = p.grad
                if dp is None:
                    continue
                if p.ndim > 1:
                    dp = dp.add(p, alpha=g["weight_decay"])
                    param_norm, update_norm = torch.norm(p), torch.norm(dp)
                    one = torch.ones_like(param_norm)
                    q = torch.where(param_norm > 0., torch.where(update_norm > 0, (g["eta"] * param_norm / update_norm), one), one)
                    dp = dp.mul(q)
                state = self.state[p]
                if "mu" not in state:
                    state["mu"] = torch.zeros_like(p)
                state["mu"].mul_(g["momentum"]).add_(dp)
                p.add_(state["mu"], alpha=-g["lr"])

class Views(Dataset):
    def __len__(self):
        return 4096
    def __getitem__(self, i):
        return (torch.rand(3, 64, 64), torch.rand(3, 64, 64)), i % 10

class Net(nn.Module):
    def __init__(self, dim=128):
        super().__init__()
        self.encoder = nn.Sequential(nn.Conv2d(3, 64, 3, 2, 1, bias=False), nn.BatchNorm2d(64), nn.ReLU(True), nn.Conv2d(64, 256, 3, 2, 1, bias=False), nn.BatchNorm2d(256),
                                     nn.ReLU(True), nn.AdaptiveAvgPool2d(1), nn.Flatten())
        self.projector = nn.Sequential(nn.Linear(256, 256, bias=False), nn.BatchNorm1d(256), nn.ReLU(), nn.Linear(256, dim, bias=False))
        self.probe = nn.Linear(256, 10)
    def forward(self, a, b):
        ha, hb = self.encoder(a), self.encoder(b)
        return self.projector(ha), self.projector(hb), self.probe(ha.detach())

def nt_xent(za, zb, temperature=0.5):
    za, zb = (torch.cat(GatherLayer.apply(F.normalize(z, dim=1)), 0) for z in (za, zb))
    z = torch.cat([za, zb])
    n = z.size(0)
    sim = F.cosine_similarity(z.unsqueeze(1), z.unsqueeze(0), dim=2) / temperature
    i, j = torch.diag(sim, n // 2), torch.diag(sim, -(n // 2))
    positive = torch.cat((i, j)).reshape(n, 1)
    mask = torch.ones((n, n), dtype=bool, device=z.device).fill_diagonal_(0)
    for k in range(n // 2):
        mask[k, n // 2 + k] = 0
        mask[n // 2 + k, k] = 0
    negative = sim[mask].reshape(n, -1)
    logits = torch.cat((positive, negative), dim=1)
    return F.cross_entropy(logits, torch.zeros(n, device=z.device).long(), reduction="sum") / n

def main():
    dist.init_process_group("nccl", init_method="env://")
    rank, local = dist.get_rank(), int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(local)
    model = nn.SyncBatchNorm.convert_sync_batchnorm(Net()).cuda(local)
    model = DDP(model, device_ids=[local], gradient_as_bucket_view=True)
    sampler = DistributedSampler(Views(), drop_last=True)
    loader = DataLoader(Views(), 32, sampler=sampler, num_workers=0, pin_memory=True)
    opt = LARS([p for p in model.parameters()], lr=0.3 * 32 * dist.get_world_size() / 256)
    sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, 100)
    for epoch in range(2):
        sampler.set_epoch(epoch)
        for step, ((a, b), y) in enumerate(loader):
            a, b, y = a.cuda(non_blocking=True), b.cuda(non_blocking=True), y.cuda(non_blocking=True)
            za, zb, logits = model(a, b)
            loss = nt_xent(za, zb) + F.cross_entropy(logits, y)
            opt.zero_grad()
            loss.backward()
            opt.step()
            reduced = loss.detach().clone()
            dist.all_reduce(reduced, op=dist.ReduceOp.SUM)
            dist.barrier()
            if rank == 0:
                print(f"Epoch {epoch} [{step}/{len(loader)}] loss {reduced.item() / dist.get_world_size():.4f}")
        sched.step()

if __name__ == "__main__":
    main()

"""Momentum contrast: a key encoder that follows, a queue in a buffer, a shuffle undone by argsort, a pointer kept on the GPU."""
import copy

import torch
import torch.nn as nn
import torch.nn.functional as F
import torchvision


class MoCo(nn.Module):
    def __init__(self, dim=128, size=1024):
        super().__init__()
        self.q = torchvision.models.resnet18(num_classes=dim)
        self.k = copy.deepcopy(self.q)
        for p in self.k.parameters():
            p.requires_grad = False
        self.register_buffer("queue", F.normalize(torch.randn(dim, size), dim=0))
        self.register_buffer("pointer", torch.zeros(1, dtype=torch.long))

    @torch.no_grad()
    def keys(self, x):
        for a, b in zip(self.q.parameters(), self.k.parameters()):
            b.data = b.data * 0.999 + a.data * 0.001
        shuffle = torch.randperm(x.shape[0]).cuda()
        return F.normalize(self.k(x[shuffle]), dim=1)[torch.argsort(shuffle)]

    def forward(self, a, b):
        q, k = F.normalize(self.q(a), dim=1), self.keys(b)
        logits = torch.cat([torch.einsum("nc,nc->n", [q, k]).unsqueeze(-1), torch.einsum("nc,ck->nk", [q, self.queue.clone().detach()])], dim=1) / 0.07
        at = int(self.pointer)
        self.queue[:, at:at + len(k)] = k.T
        self.pointer[0] = (at + len(k)) % self.queue.shape[1]
        return logits, torch.zeros(logits.shape[0], dtype=torch.long).cuda()


torch.cuda.set_device(0)
model = MoCo().cuda(0)
optimizer = torch.optim.SGD([p for p in model.parameters() if p.requires_grad], 0.03, momentum=0.9, nesterov=True)
for step in range(5):
    views = [torch.randn(32, 3, 96, 96).cuda(0, non_blocking=True) for _ in range(2)]
    logits, labels = model(*views)
    loss = nn.CrossEntropyLoss().cuda(0)(logits, labels)
    accuracy = (logits.argmax(1) == labels).float().mean().mul_(100).item()
    optimizer.zero_grad(); loss.backward(); optimizer.step()
    print(f"{step} {loss.item():.3f} {accuracy:.1f}")

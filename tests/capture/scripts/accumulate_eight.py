"""Accumulation over eight micro-batches with a remainder at the end of the epoch, zeroed by hand, logits of the accumulated batches kept for a metric until the step."""
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self, vocab=2000, dim=256):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim)
        self.rnn = nn.ModuleList([nn.Linear(dim, dim) for _ in range(4)])
        self.head = nn.Linear(dim, vocab)
    def forward(self, ids):
        h = self.embed(ids)
        for l in self.rnn:
            h = h + torch.tanh(l(h))
        return self.head(h)

device = torch.device('cuda:0')
net = Net().to(device)
opt = torch.optim.Adafactor(net.parameters(), lr=1e-3) if hasattr(torch.optim, "Adafactor") else torch.optim.Adam(net.parameters())
accumulation_steps, kept = 8, []
loader = [torch.randint(2000, (4, 64)) for _ in range(20)]
for epoch in range(2):
    for i, ids in enumerate(loader):
        ids = ids.to(device)
        logits = net(ids)
        loss = nn.functional.cross_entropy(logits.flatten(0, 1), ids.flatten()) / accumulation_steps
        loss.backward()
        kept.append((logits.detach(), ids))
        if (i + 1) % accumulation_steps == 0 or i + 1 == len(loader):
            opt.step()
            for p in net.parameters():
                p.grad = None
            predictions, targets = torch.cat([k[0] for k in kept]).argmax(-1), torch.cat([k[1] for k in kept])
            print(epoch, i, loss.item() * accumulation_steps, (predictions == targets).float().mean().item())
            kept.clear()

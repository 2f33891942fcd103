"""A recommender: sparse embedding bags with SparseAdam, a dense part with Adagrad, interactions of all pairs."""
import numpy as np, torch, torch.nn as nn
from sys import stdout

torch.set_default_dtype(torch.float32)
SIZES, DIM, DENSE, BATCH = [100_000, 40_000, 1_000, 12], 64, 13, 2048

class DLRM(nn.Module):
    def __init__(self):
        super().__init__()
        self.tables = nn.ModuleList(nn.EmbeddingBag(n, DIM, mode="sum", sparse=True) for n in SIZES[:3])
        self.small = nn.Embedding(SIZES[3], DIM, sparse=True)
        self.bottom = nn.Sequential(nn.Linear(DENSE, 512), nn.ReLU(), nn.Linear(512, DIM), nn.ReLU())
        pairs = (len(SIZES) + 1) * len(SIZES) // 2
        self.top = nn.Sequential(nn.Linear(DIM + pairs, 512), nn.ReLU(), nn.Linear(512, 1), nn.Sigmoid())
        self.register_buffer("upper", torch.triu_indices(len(SIZES) + 1, len(SIZES) + 1, offset=1))
    def forward(self, dense, offsets, indices, small):
        x = self.bottom(dense)
        ly = [table(i, o) for table, o, i in zip(self.tables, offsets, indices)] + [self.small(small)]
        t = torch.cat([x] + ly, dim=1).view(x.size(0), -1, DIM)
        z = torch.bmm(t, t.transpose(1, 2))
        return self.top(torch.cat([x, z[:, self.upper[0], self.upper[1]]], dim=1)).squeeze(1)

rng = np.random.default_rng(0)
model = DLRM().cuda()
sparse = [*model.tables.parameters(), *model.small.parameters()]
dense = [*model.bottom.parameters(), *model.top.parameters()]
opts = torch.optim.SparseAdam(sparse, lr=1e-3), torch.optim.Adagrad(dense, lr=1e-2)
bce = nn.BCELoss(reduction="mean")
for it in range(4):
    lengths = [rng.integers(1, 5, BATCH) for _ in range(3)]
    offsets = [torch.from_numpy(np.concatenate([[0], np.cumsum(l)[:-1]])).cuda() for l in lengths]
    indices = [torch.from_numpy(rng.integers(0, n, l.sum())).cuda() for n, l in zip(SIZES, lengths)]
    y = model(torch.rand(BATCH, DENSE, device="cuda"), offsets, indices, torch.from_numpy(rng.integers(0, 12, BATCH)).to("cuda"))
    loss = bce(y, torch.from_numpy(rng.integers(0, 2, BATCH)).float().cuda())
    for o in opts: o.zero_grad()
    loss.backward()
    for o in opts: o.step()
    acc = ((y > 0.5).float() == 1).sum().item() / BATCH
    stdout.write(f"{it} {loss.item():.4f} {acc:.2f}\n"); stdout.flush()

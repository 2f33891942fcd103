"""An IterableDataset behind worker processes with bucketing, packed sequences, and an online k-means on features."""
import itertools, random
import torch, torch.nn as nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence, pad_sequence
from torch.utils.data import DataLoader, IterableDataset, get_worker_info

class Stream(IterableDataset):
    def __iter__(self):
        info = get_worker_info(); seed = 0 if info is None else info.id
        rng = random.Random(seed)
        for i in itertools.count():
            n = rng.randint(40, 160)
            yield torch.randn(n, 80), torch.randint(1, 30, (n // 8,))

def collate(rows):
    rows.sort(key=lambda r: -len(r[0]))
    x, y = zip(*rows)
    return {"x": pad_sequence(x, batch_first=True), "lengths": torch.tensor([len(a) for a in x]), "y": pad_sequence(y, batch_first=True)}

def init(worker_id):
    random.seed(worker_id); torch.manual_seed(worker_id)

class Listener(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv1d(80, 128, 3, stride=2, padding=1)
        self.rnn = nn.GRU(128, 256, num_layers=2, bidirectional=True, batch_first=True, dropout=0.2)
        self.classes = nn.Linear(512, 30)
        self.register_buffer("centers", torch.randn(64, 512)); self.register_buffer("counts", torch.zeros(64))
    def forward(self, x, lengths):
        x = self.conv(x.transpose(1, 2)).transpose(1, 2).relu()
        lengths = (lengths + 1) // 2
        out, _ = self.rnn(pack_padded_sequence(x, lengths.cpu(), batch_first=True))
        out, _ = pad_packed_sequence(out, batch_first=True)
        if self.training: self.cluster(out.detach().flatten(0, 1))
        return self.classes(out)
    @torch.no_grad()
    def cluster(self, f):
        nearest = torch.cdist(f, self.centers).argmin(1)
        one = nn.functional.one_hot(nearest, 64).type_as(f)
        self.counts.mul_(0.9).add_(one.sum(0), alpha=0.1)
        self.centers.lerp_(one.T @ f / self.counts.clamp_min(1e-3)[:, None], 0.1)

if __name__ == "__main__":
    torch.multiprocessing.set_sharing_strategy("file_system")
    model = Listener().cuda(); optimizer = torch.optim.Adadelta(model.parameters())
    loader = DataLoader(Stream(), batch_size=8, num_workers=2, collate_fn=collate, pin_memory=True, persistent_workers=True, prefetch_factor=2, worker_init_fn=init, multiprocessing_context="fork")
    for i, batch in zip(range(6), loader):
        batch = {k: v.cuda(non_blocking=True) for k, v in batch.items()}
        out = model(batch["x"], batch["lengths"])
        frames = torch.arange(out.shape[1], device="cuda")[None] < ((batch["lengths"] + 1) // 2)[:, None]
        target = nn.functional.interpolate(batch["y"][:, None].float(), size=out.shape[1]).squeeze(1).long()
        loss = nn.functional.cross_entropy(out[frames], target[frames])
        optimizer.zero_grad(); loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 5.0); optimizer.step(); print(i, loss.item(), model.counts.max().item())

"""A data loader that sorts by length, shortest first: the first two batches are the smallest of the epoch, and the last batch is not full."""
# later: grows
import torch
from torch import nn
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader, Dataset, Sampler

class Texts(Dataset):
    def __init__(self, n=100):
        generator = torch.Generator().manual_seed(3)
        self.texts = [torch.randint(1, 1000, (int(l),), generator=generator) for l in torch.randint(16, 256, (n,), generator=generator)]
    def __len__(self):
        return len(self.texts)
    def __getitem__(self, i):
        return self.texts[i], i % 4

class BucketSampler(Sampler):
    def __init__(self, data, size):
        self.order, self.size = sorted(range(len(data)), key=lambda i: len(data.texts[i])), size
    def __iter__(self):
        for i in range(0, len(self.order), self.size):
            yield self.order[i:i + self.size]
    def __len__(self):
        return (len(self.order) + self.size - 1) // self.size

def collate(items):
    texts, labels = zip(*items)
    ids = pad_sequence(texts, batch_first=True)
    return ids, ids.eq(0), torch.tensor(labels)

class Classifier(nn.Module):
    def __init__(self, dim=256):
        super().__init__()
        self.embed = nn.Embedding(1000, dim, padding_idx=0)
        self.encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(dim, 8, 1024, batch_first=True, dropout=0.0), 3)
        self.head = nn.Linear(dim, 4)
    def forward(self, ids, pad):
        h = self.encoder(self.embed(ids), src_key_padding_mask=pad)
        return self.head(h.masked_fill(pad[..., None], 0).sum(1) / (~pad).sum(1, keepdim=True))

data = Texts()
loader = DataLoader(data, batch_sampler=BucketSampler(data, 12), collate_fn=collate)
model = Classifier().cuda()
opt = torch.optim.AdamW(model.parameters(), 1e-4)
for epoch in range(2):
    for ids, pad, labels in loader:
        ids, pad, labels = ids.cuda(), pad.cuda(), labels.cuda()
        loss = nn.functional.cross_entropy(model(ids, pad), labels)
        opt.zero_grad()
        loss.backward()
        opt.step()
        print(epoch, tuple(ids.shape), loss.item())

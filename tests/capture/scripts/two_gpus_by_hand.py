"""Model parallelism by hand: the first half on cuda:0, the second on cuda:1, micro-batches overlapped, the larger half on the second GPU."""
# devices: 2
import torch
import torch.nn as nn

class Split(nn.Module):
    def __init__(self, split=16):
        super().__init__()
        self.split = split
        self.seq1 = nn.Sequential(nn.Linear(512, 1024), nn.ReLU(), nn.Linear(1024, 1024), nn.ReLU()).to('cuda:0')
        self.seq2 = nn.Sequential(nn.Linear(1024, 4096), nn.ReLU(), nn.Linear(4096, 4096), nn.ReLU(), nn.Linear(4096, 1024)).to('cuda:1')
        self.fc = nn.Linear(1024, 10).to('cuda:1')
    def forward(self, x):
        parts = iter(x.split(self.split, dim=0))
        prev, ret = self.seq1(next(parts)).to('cuda:1'), []
        for p in parts:
            ret.append(self.fc(self.seq2(prev)))
            prev = self.seq1(p).to('cuda:1')
        ret.append(self.fc(self.seq2(prev)))
        return torch.cat(ret)

print(torch.cuda.device_count(), "GPUs")
model = Split()
loss_fn = nn.MSELoss()
optimizer = torch.optim.Adam(model.parameters(), lr=0.001)
for i in range(6):
    inputs, labels = torch.randn(64, 512), torch.zeros(64, 10).scatter_(1, torch.randint(10, (64, 1)), 1)
    optimizer.zero_grad()
    outputs = model(inputs.to('cuda:0'))
    labels = labels.to(outputs.device)
    loss_fn(outputs, labels).backward()
    optimizer.step()
    print(i, torch.cuda.max_memory_allocated(0) / 2**20, torch.cuda.max_memory_allocated(1) / 2**20)

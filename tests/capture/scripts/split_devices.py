"""Mixed devices: the embedding stays on the host, activations of the middle are offloaded, the head is on the GPU."""
import torch
from torch import nn
from torch.autograd.graph import save_on_cpu

class Middle(nn.Module):
    def __init__(self, d=1024, n=6):
        super().__init__()
        self.layers = nn.ModuleList(nn.TransformerEncoderLayer(d, 16, 4 * d, dropout=0.0, batch_first=True) for _ in range(n))
    def forward(self, x):
        for i, layer in enumerate(self.layers):
            if i % 2:
                with save_on_cpu(pin_memory=True):
                    x = layer(x)
            else:
                x = layer(x)
        return x

embed = nn.Embedding(50_000, 1024)          # 195 MiB of host memory
middle = Middle().to("cuda:0")
head = nn.Linear(1024, 2000).to(0)
on_host = torch.optim.SGD(embed.parameters(), lr=0.1)
on_gpu = torch.optim.Adam([{"params": middle.parameters()}, {"params": head.parameters(), "lr": 1e-2}], lr=1e-4)
mean = torch.zeros(2000)
for step in range(4):
    ids = torch.randint(0, 50_000, (8, 256))
    hidden = embed(ids).to("cuda", non_blocking=True)
    logits = head(middle(hidden))
    loss = nn.functional.cross_entropy(logits.flatten(0, 1), (ids.flatten() % 2000).to(logits.device))
    for o in (on_host, on_gpu): o.zero_grad()
    loss.backward()
    assert embed.weight.grad.device.type == "cpu" and head.weight.grad.is_cuda
    nn.utils.clip_grad_norm_(list(middle.parameters()) + list(head.parameters()), 0.5)
    on_host.step(); on_gpu.step()
    mean = 0.9 * mean + 0.1 * logits.detach().mean((0, 1)).cpu()
    print(step, loss.detach().cpu().numpy(), mean.norm().item())

import torch, torch.nn as nn
from torch.autograd.graph import save_on_cpu, saved_tensors_hooks
device = "cuda" if torch.cuda.is_available() else "cpu"

class Packed:
    """Saves activations in half precision."""
    def __enter__(self):
        self.hooks = saved_tensors_hooks(lambda t: (t.dtype, t.half()) if t.is_floating_point() and t.numel() > 10000 and not isinstance(t, nn.Parameter) else t, lambda p: p[1].to(p[0]) if isinstance(p, tuple) else p)
        return self.hooks.__enter__()
    def __exit__(self, *a): return self.hooks.__exit__(*a)

class Block(nn.Module):
    def __init__(self, w):
        super().__init__()
        self.norm, self.up, self.down = nn.LayerNorm(w), nn.Linear(w, 4 * w), nn.Linear(4 * w, w)
    def forward(self, x): return x + self.down(torch.nn.functional.silu(self.up(self.norm(x))))

blocks = nn.ModuleList(Block(512) for _ in range(8)).to(device)
head = nn.Linear(512, 1000).to(device)
optimizer = torch.optim.NAdam([*blocks.parameters(), *head.parameters()], 1e-4)
for step in range(3):
    x = torch.randn(32, 64, 512, device=device)
    for i, block in enumerate(blocks):
        if i < 3:
            with save_on_cpu(pin_memory=torch.cuda.is_available()): x = block(x)
        elif i < 6:
            with Packed(): x = block(x)
        else: x = block(x)
    loss = head(x.mean(1)).logsumexp(1).mean()
    loss.backward(); optimizer.step(); optimizer.zero_grad()
    if torch.cuda.is_available():
        torch.cuda.synchronize(); print(step, torch.cuda.max_memory_allocated() >> 20, torch.cuda.memory_summary()[:0])
        torch.cuda.reset_peak_memory_stats(); torch.cuda.empty_cache()

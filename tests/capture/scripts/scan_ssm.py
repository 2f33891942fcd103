import torch, torch.nn as nn, torch.nn.functional as F
from torch.utils.checkpoint import checkpoint_sequential, create_selective_checkpoint_contexts, checkpoint, CheckpointPolicy
import functools
dev = torch.device("cuda" if torch.cuda.is_available() else "cpu")

@torch.jit.script
def scan(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    h = torch.zeros_like(a[:, 0])
    out = []
    for t in range(a.shape[1]):
        h = a[:, t] * h + b[:, t]
        out.append(h)
    return torch.stack(out, 1)

class Mixer(nn.Module):
    def __init__(self, d, n=8):
        super().__init__()
        self.inner, self.n = 2 * d, n
        self.project, self.conv = nn.Linear(d, 4 * d), nn.Conv1d(2 * d, 2 * d, 4, padding=3, groups=2 * d)
        self.ssm, self.dt = nn.Linear(2 * d, 2 * n + 16), nn.Linear(16, 2 * d)
        self.log_a, self.d = nn.Parameter(torch.log(torch.arange(1, n + 1).float()).repeat(2 * d, 1)), nn.Parameter(torch.ones(2 * d))
        self.out, self.norm = nn.Linear(2 * d, d), nn.LayerNorm(d)
    def forward(self, x):
        u, gate = self.project(self.norm(x)).chunk(2, -1)
        u = F.silu(self.conv(u.mT)[..., :x.shape[1]].mT)
        b, c, dt = self.ssm(u).split([self.n, self.n, 16], -1)
        dt = F.softplus(self.dt(dt))
        a = torch.exp(dt.unsqueeze(-1) * -torch.exp(self.log_a))
        h = scan(a, dt.unsqueeze(-1) * b.unsqueeze(2) * u.unsqueeze(-1))
        return x + self.out((torch.einsum("blin,bln->bli", h, c) + self.d * u) * F.silu(gate))

layers = nn.Sequential(*[Mixer(64) for _ in range(4)]).to(dev)
embed, head = nn.Embedding(256, 64).to(dev), nn.Linear(64, 256).to(dev)
def policy(ctx, op, *a, **k): return CheckpointPolicy.MUST_SAVE if op in (torch.ops.aten.mm.default, torch.ops.aten.addmm.default) else CheckpointPolicy.PREFER_RECOMPUTE
optimizer = torch.optim.Adafactor([*layers.parameters(), *embed.parameters(), *head.parameters()], 1e-2)
for i in range(3):
    x = torch.randint(0, 256, (4, 65), device=dev)
    h = checkpoint_sequential(layers[:2], 2, embed(x[:, :-1]), use_reentrant=False)
    for layer in layers[2:]:
        h = checkpoint(layer, h, use_reentrant=False, context_fn=functools.partial(create_selective_checkpoint_contexts, policy))
    loss = F.nll_loss(head(h).log_softmax(-1).transpose(1, 2), x[:, 1:])
    loss.backward(); optimizer.step(); optimizer.zero_grad(); print(i, loss.item())

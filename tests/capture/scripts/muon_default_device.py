"""Everything made on the GPU by a default device; an optimizer of one's own (Muon) beside AdamW; tied weights, a z-loss."""
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.set_default_device("cuda")
torch.set_float32_matmul_precision("high")


class Muon(torch.optim.Optimizer):
    def __init__(self, params, lr=0.02, momentum=0.95):
        super().__init__(params, dict(lr=lr, momentum=momentum))

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for p in group["params"]:
                state = self.state[p]
                buffer = state.setdefault("momentum", torch.zeros_like(p))
                buffer.lerp_(p.grad, 1 - group["momentum"])
                x = p.grad.lerp(buffer, group["momentum"]).bfloat16()
                x = x.T if x.size(0) > x.size(1) else x
                x = x / (x.norm() + 1e-7)
                for _ in range(5):
                    a = x @ x.mT
                    x = 3.4445 * x + (-4.7750 * a + 2.0315 * a @ a) @ x
                x = x.T if p.size(0) > p.size(1) else x
                p.add_(x.to(p.dtype), alpha=-group["lr"])


class Block(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.qkv, self.o, self.up, self.down = nn.Linear(d, 3 * d, bias=False), nn.Linear(d, d, bias=False), nn.Linear(d, 4 * d, bias=False), nn.Linear(4 * d, d, bias=False)

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = self.qkv(F.rms_norm(x, (d,))).view(b, t, 3, 8, d // 8).permute(2, 0, 3, 1, 4)
        x = x + self.o(F.scaled_dot_product_attention(F.rms_norm(q, (d // 8,)), F.rms_norm(k, (d // 8,)), v, is_causal=True).transpose(1, 2).reshape(b, t, d))
        return x + self.down(F.relu(self.up(F.rms_norm(x, (d,)))).square())


class Model(nn.Module):
    def __init__(self, v=8192, d=512):
        super().__init__()
        self.e, self.blocks, self.head = nn.Embedding(v, d), nn.ModuleList(Block(d) for _ in range(4)), nn.Linear(d, v, bias=False)
        self.head.weight = self.e.weight

    def forward(self, i):
        x = self.e(i)
        for block in self.blocks:
            x = block(x)
        return self.head(x)


model = Model()
matrices = [p for p in model.blocks.parameters() if p.ndim == 2]
optimizers = [Muon(matrices), torch.optim.AdamW([model.e.weight], lr=3e-4, betas=(0.9, 0.95), fused=True)]
for step in range(8):
    tokens = torch.randint(8192, (4, 257))
    with torch.autocast("cuda", dtype=torch.bfloat16):
        logits = model(tokens[:, :-1])
        loss = F.cross_entropy(logits.float().flatten(0, 1), tokens[:, 1:].flatten()) + 1e-4 * logits.float().logsumexp(-1).square().mean()
    loss.backward()
    for o in optimizers:
        o.step()
    model.zero_grad(set_to_none=True)

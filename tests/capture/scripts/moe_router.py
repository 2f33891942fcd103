import torch, torch.nn as nn, torch.nn.functional as F
device = "cuda" if torch.cuda.is_available() else "cpu"

class Experts(nn.Module):
    def __init__(self, dim, hidden, count, k):
        super().__init__()
        self.k, self.count = k, count
        self.gate = nn.Linear(dim, count, bias=False)
        self.experts = nn.ModuleList([nn.Sequential(nn.Linear(dim, hidden), nn.SiLU(), nn.Linear(hidden, dim)) for _ in range(count)])
    def forward(self, x):
        flat = x.view(-1, x.shape[-1])
        scores = self.gate(flat).softmax(-1)
        weight, chosen = torch.topk(scores, self.k, -1)
        weight = weight / weight.sum(-1, keepdim=True)
        counts = torch.bincount(chosen.flatten(), minlength=self.count).tolist()
        out = torch.zeros_like(flat)
        for i, expert in enumerate(self.experts):
            if counts[i] == 0: continue
            row, slot = torch.where(chosen == i)
            out.index_add_(0, row, expert(flat[row]) * weight[row, slot, None])
        share = F.one_hot(chosen, self.count).float().mean((0, 1))
        return out.view_as(x), self.count * (share * scores.mean(0)).sum()

class Layer(nn.Module):
    def __init__(self, dim=256):
        super().__init__()
        self.attention, self.moe = nn.MultiheadAttention(dim, 8, batch_first=True), Experts(dim, 1024, 8, 2)
        self.a, self.b = nn.RMSNorm(dim), nn.RMSNorm(dim)
    def forward(self, x, mask):
        h = self.a(x)
        x = x + self.attention(h, h, h, attn_mask=mask, is_causal=True, need_weights=False)[0]
        y, balance = self.moe(self.b(x))
        return x + y, balance

embed, head = nn.Embedding(32000, 256).to(device), nn.Linear(256, 32000, bias=False).to(device)
layers = nn.ModuleList([Layer() for _ in range(4)]).to(device)
head.weight = embed.weight
optimizer = torch.optim.AdamW({id(p): p for m in (embed, layers, head) for p in m.parameters()}.values(), 3e-4)
mask = nn.Transformer.generate_square_subsequent_mask(256, device=device)
for step in range(3):
    tokens = torch.randint(0, 32000, (8, 257)).to(device)
    x, extra = embed(tokens[:, :-1]), 0
    for layer in layers:
        x, balance = layer(x, mask); extra = extra + balance
    loss = F.cross_entropy(head(x).flatten(0, 1), tokens[:, 1:].flatten()) + 0.01 * extra
    loss.backward(); optimizer.step(); optimizer.zero_grad(); print(step, loss.item())

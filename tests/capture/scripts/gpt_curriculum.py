"""A GPT from scratch: the sequence length doubles during training (64, then 256 from step 4 on), and every third step it samples with a key/value cache."""
# later: grows
import torch, torch.nn as nn
from torch.nn import functional as F

class Attention(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads, self.qkv, self.proj = heads, nn.Linear(dim, 3 * dim, bias=False), nn.Linear(dim, dim, bias=False)
    def forward(self, x, cache=None):
        b, t, c = x.shape
        q, k, v = (h.view(b, t, self.heads, c // self.heads).transpose(1, 2) for h in self.qkv(x).split(c, dim=2))
        if cache is not None:
            if "k" in cache:
                k, v = torch.cat([cache["k"], k], 2), torch.cat([cache["v"], v], 2)
            cache["k"], cache["v"] = k, v
        att = (q @ k.transpose(-2, -1)) / (c // self.heads) ** .5
        total = k.shape[2]
        keep = torch.ones(t, total, dtype=torch.bool, device=x.device).tril(total - t)
        att = F.softmax(att.masked_fill(~keep, float("-inf")), -1)
        return self.proj((att @ v).transpose(1, 2).contiguous().view(b, t, c))

class Block(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.ln1, self.attn, self.ln2 = nn.LayerNorm(dim), Attention(dim, heads), nn.LayerNorm(dim)
        self.mlp = nn.Sequential(nn.Linear(dim, 4 * dim), nn.ReLU(), nn.Linear(4 * dim, dim))
    def forward(self, x, cache=None):
        x = x + self.attn(self.ln1(x), cache)
        return x + self.mlp(self.ln2(x))

class GPT(nn.Module):
    def __init__(self, vocab=512, dim=256, depth=4, heads=8, block=256):
        super().__init__()
        self.block, self.tok, self.pos = block, nn.Embedding(vocab, dim), nn.Parameter(torch.zeros(block, dim))
        self.blocks, self.ln, self.head = nn.ModuleList([Block(dim, heads) for _ in range(depth)]), nn.LayerNorm(dim), nn.Linear(dim, vocab)
    def forward(self, ids, targets=None, caches=None, start=0):
        x = self.tok(ids) + self.pos[start:start + ids.shape[1]]
        for i, b in enumerate(self.blocks):
            x = b(x, None if caches is None else caches[i])
        logits = self.head(self.ln(x))
        return logits, None if targets is None else F.cross_entropy(logits.flatten(0, 1), targets.flatten())
    @torch.no_grad()
    def sample(self, ids, count, temperature=.8, top_k=40):
        caches = [{} for _ in self.blocks]
        logits, _ = self(ids, caches=caches)
        for _ in range(count):
            l = logits[:, -1] / temperature
            v, _ = torch.topk(l, top_k)
            l[l < v[:, [-1]]] = -float("inf")
            nxt = torch.multinomial(F.softmax(l, -1), 1)
            ids = torch.cat([ids, nxt], 1)
            if nxt[0].item() == 0:
                break
            logits, _ = self(nxt, caches=caches, start=ids.shape[1] - 1)
        return ids

device = 'cuda'
text = torch.randint(1, 512, (20000,))
model = GPT().to(device)
opt = torch.optim.AdamW(model.parameters(), lr=3e-4)
for step in range(8):
    length = 64 if step < 4 else 256
    ix = torch.randint(len(text) - length - 1, (8,))
    x, y = torch.stack([text[i:i + length] for i in ix]), torch.stack([text[i + 1:i + 1 + length] for i in ix])
    x, y = x.pin_memory().to(device, non_blocking=True), y.pin_memory().to(device, non_blocking=True)
    logits, loss = model(x, y)
    opt.zero_grad(set_to_none=True)
    loss.backward()
    opt.step()
    if step % 3 == 0:
        model.eval()
        print(step, loss.item(), "".join(chr(33 + t % 90) for t in model.sample(torch.ones(2, 8, dtype=torch.long, device=device), 40)[0].tolist()))
        model.train()

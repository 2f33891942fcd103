import math, torch, torch.nn as nn, torch.nn.functional as F
device = "cuda" if torch.cuda.is_available() else "cpu"

class Tower(nn.Module):
    def __init__(self, vocabulary=0, width=256, out=128):
        super().__init__()
        self.embed = nn.Embedding(vocabulary, width) if vocabulary else nn.Conv2d(3, width, 16, 16)
        self.blocks = nn.ModuleList([nn.TransformerEncoderLayer(width, 4, 4 * width, 0.1, "gelu", batch_first=True, norm_first=True) for _ in range(3)])
        self.out = nn.Linear(width, out, bias=False)
    def forward(self, x):
        h = self.embed(x) if x.dim() == 2 else self.embed(x).flatten(2).transpose(1, 2)
        for b in self.blocks: h = b(h)
        return F.normalize(self.out(h.mean(1)), dim=-1)

image, text = Tower().to(device), Tower(8000).to(device)
scale = nn.Parameter(torch.tensor(math.log(1 / 0.07), device=device))
optimizer = torch.optim.AdamW([*image.parameters(), *text.parameters(), scale], 1e-4, fused=(device == "cuda"))
for step in range(3):
    pixels, tokens = torch.rand(64, 3, 128, 128).to(device), torch.randint(0, 8000, (64, 32)).to(device)
    states, cached = [], [[], []]
    for k, (tower, data) in enumerate(((image, pixels), (text, tokens))):
        for chunk in data.split(16):
            states.append(torch.cuda.get_rng_state() if device == "cuda" else torch.get_rng_state())
            with torch.no_grad(): cached[k].append(tower(chunk))
    a, b = (torch.cat(c).requires_grad_() for c in cached)
    logits = scale.exp() * a @ b.t()
    y = torch.arange(64, device=device)
    loss = (F.cross_entropy(logits, y) + F.cross_entropy(logits.t(), y)) / 2
    loss.backward()
    grads = [*a.grad.split(16), *b.grad.split(16)]
    chunks = [(image, c) for c in pixels.split(16)] + [(text, c) for c in tokens.split(16)]
    for (tower, chunk), g, state in zip(chunks, grads, states):
        with torch.random.fork_rng(devices=[0] if device == "cuda" else []):
            torch.cuda.set_rng_state(state) if device == "cuda" else torch.set_rng_state(state)
            out = tower(chunk)
        torch.dot(out.flatten(), g.flatten()).backward()
    optimizer.step(); optimizer.zero_grad()
    with torch.no_grad(): scale.clamp_(0, math.log(100))
    print(step, loss.item())

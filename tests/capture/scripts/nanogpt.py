import inspect, math, time, torch, torch.nn as nn
from contextlib import nullcontext
from torch.nn import functional as F

class Attention(nn.Module):
    def __init__(self, d, h):
        super().__init__()
        self.c_attn, self.c_proj, self.h, self.flash = nn.Linear(d, 3 * d, bias=False), nn.Linear(d, d, bias=False), h, hasattr(F, "scaled_dot_product_attention")
    def forward(self, x):
        B, T, C = x.size()
        q, k, v = (t.view(B, T, self.h, C // self.h).transpose(1, 2) for t in self.c_attn(x).split(C, dim=2))
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=None, dropout_p=0.0, is_causal=True)
        return self.c_proj(y.transpose(1, 2).contiguous().view(B, T, C))

class GPT(nn.Module):
    def __init__(self, vocab=50304, block=256, n=6, d=384, h=6):
        super().__init__()
        block_of = lambda: nn.ModuleDict(dict(a=nn.LayerNorm(d), b=Attention(d, h), c=nn.LayerNorm(d), m=nn.Sequential(nn.Linear(d, 4 * d), nn.GELU(), nn.Linear(4 * d, d))))
        self.wte, self.wpe, self.h, self.ln, self.head = nn.Embedding(vocab, d), nn.Embedding(block, d), nn.ModuleList(block_of() for _ in range(n)), nn.LayerNorm(d), nn.Linear(d, vocab, bias=False)
        self.wte.weight = self.head.weight
        self.apply(lambda m: torch.nn.init.normal_(m.weight, mean=0.0, std=0.02) if isinstance(m, (nn.Linear, nn.Embedding)) else None)
    def forward(self, idx, targets):
        x = self.wte(idx) + self.wpe(torch.arange(0, idx.size(1), dtype=torch.long, device=idx.device))
        for b in self.h:
            x = x + b["b"](b["a"](x))
            x = x + b["m"](b["c"](x))
        logits = self.head(self.ln(x))
        return logits, F.cross_entropy(logits.view(-1, logits.size(-1)), targets.view(-1), ignore_index=-1)

device, device_type, dtype = "cuda", "cuda", "bfloat16" if torch.cuda.is_available() and torch.cuda.is_bf16_supported() else "float16"
torch.manual_seed(1337)
torch.backends.cuda.matmul.allow_tf32 = True
ctx = nullcontext() if device_type == "cpu" else torch.amp.autocast(device_type=device_type, dtype={"bfloat16": torch.bfloat16, "float16": torch.float16}[dtype])
data = torch.randint(0, 50257, (100000,))
def get_batch():
    ix = torch.randint(len(data) - 256, (12,))
    x, y = torch.stack([data[i : i + 256] for i in ix]), torch.stack([data[i + 1 : i + 257] for i in ix])
    return x.pin_memory().to(device, non_blocking=True), y.pin_memory().to(device, non_blocking=True)
model = GPT().to(device)
scaler = torch.cuda.amp.GradScaler(enabled=(dtype == "float16"))
groups = [{"params": [p for p in model.parameters() if p.dim() >= 2], "weight_decay": 0.1}, {"params": [p for p in model.parameters() if p.dim() < 2], "weight_decay": 0.0}]
optimizer = torch.optim.AdamW(groups, lr=6e-4, betas=(0.9, 0.95), **({"fused": True} if "fused" in inspect.signature(torch.optim.AdamW).parameters else {}))
model = torch.compile(model)
X, Y = get_batch()
for it in range(10):
    t0 = time.time()
    for micro in range(5):
        with ctx:
            logits, loss = model(X, Y)
            loss = loss / 5
        X, Y = get_batch()
        scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    scaler.step(optimizer); scaler.update(); optimizer.zero_grad(set_to_none=True)
    print(it, loss.item() * 5, math.isnan(loss.item()), time.time() - t0)

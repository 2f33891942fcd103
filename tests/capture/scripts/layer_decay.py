"""BEiT-style fine-tuning: a learning rate per layer and decay group, drop path, layer scale, relative position bias, warm-up by hand, mixup targets, gradient norm by hand."""
import math, json, torch, torch.nn as nn, torch.nn.functional as F

def drop_path(x, p, training):
    if p == 0. or not training: return x
    keep = 1 - p
    mask = x.new_empty((x.shape[0],) + (1,) * (x.ndim - 1)).bernoulli_(keep)
    return x.div(keep) * mask

class Attention(nn.Module):
    def __init__(self, dim, heads, window):
        super().__init__()
        self.heads, self.scale = heads, (dim // heads) ** -0.5
        self.qkv = nn.Linear(dim, dim * 3, bias=False)
        self.q_bias, self.v_bias = nn.Parameter(torch.zeros(dim)), nn.Parameter(torch.zeros(dim))
        self.table = nn.Parameter(torch.zeros((2 * window - 1) ** 2 + 3, heads))
        coords = torch.stack(torch.meshgrid([torch.arange(window), torch.arange(window)], indexing="ij")).flatten(1)
        rel = (coords[:, :, None] - coords[:, None, :]).permute(1, 2, 0).contiguous()
        rel[:, :, 0] += window - 1; rel[:, :, 1] += window - 1; rel[:, :, 0] *= 2 * window - 1
        index = torch.zeros((window ** 2 + 1,) * 2, dtype=rel.dtype)
        index[1:, 1:] = rel.sum(-1)
        index[0, 0:] = (2 * window - 1) ** 2; index[0:, 0] = (2 * window - 1) ** 2 + 1; index[0, 0] = (2 * window - 1) ** 2 + 2
        self.register_buffer("index", index)
        self.proj, self.drop = nn.Linear(dim, dim), nn.Dropout(0.1)
    def forward(self, x):
        b, n, c = x.shape
        bias = torch.cat((self.q_bias, torch.zeros_like(self.v_bias, requires_grad=False), self.v_bias))
        q, k, v = F.linear(x, self.qkv.weight, bias).reshape(b, n, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        attn = (q * self.scale) @ k.transpose(-2, -1)
        attn = attn + self.table[self.index.view(-1)].view(n, n, -1).permute(2, 0, 1).contiguous().unsqueeze(0)
        return self.drop(self.proj((self.drop(attn.softmax(-1)) @ v).transpose(1, 2).reshape(b, n, -1)))

class Block(nn.Module):
    def __init__(self, dim, heads, window, dp):
        super().__init__()
        self.norm1, self.attn, self.norm2 = nn.LayerNorm(dim, eps=1e-6), Attention(dim, heads, window), nn.LayerNorm(dim, eps=1e-6)
        self.mlp = nn.Sequential(nn.Linear(dim, 4 * dim), nn.GELU(), nn.Linear(4 * dim, dim))
        self.gamma_1, self.gamma_2, self.dp = nn.Parameter(0.1 * torch.ones(dim)), nn.Parameter(0.1 * torch.ones(dim)), dp
    def forward(self, x):
        x = x + drop_path(self.gamma_1 * self.attn(self.norm1(x)), self.dp, self.training)
        return x + drop_path(self.gamma_2 * self.mlp(self.norm2(x)), self.dp, self.training)

class Beit(nn.Module):
    def __init__(self, dim=192, depth=6, heads=6, classes=100):
        super().__init__()
        self.patch_embed = nn.Conv2d(3, dim, 16, 16)
        self.cls_token = nn.Parameter(torch.zeros(1, 1, dim))
        self.blocks = nn.ModuleList(Block(dim, heads, 8, d) for d in [x.item() for x in torch.linspace(0, 0.1, depth)])
        self.fc_norm, self.head = nn.LayerNorm(dim), nn.Linear(dim, classes)
        self.apply(self._init_weights)
    def _init_weights(self, m):
        if isinstance(m, nn.Linear):
            nn.init.trunc_normal_(m.weight, std=.02)
    def forward(self, x):
        x = self.patch_embed(x).flatten(2).transpose(1, 2)
        x = torch.cat((self.cls_token.expand(x.size(0), -1, -1), x), 1)
        for b in self.blocks:
            x = b(x)
        return self.head(self.fc_norm(x[:, 1:].mean(1)))

def layer_id(name, depth):
    if name in ("cls_token",) or name.startswith("patch_embed"): return 0
    return int(name.split(".")[1]) + 1 if name.startswith("blocks") else depth + 1

def groups(model, wd=0.05, decay=0.65, depth=6):
    found = {}
    for name, p in model.named_parameters():
        if not p.requires_grad: continue
        no = p.ndim == 1 or name.endswith(".bias")
        i = layer_id(name, depth)
        g = found.setdefault(f"layer_{i}_{'no_decay' if no else 'decay'}", {"params": [], "weight_decay": 0. if no else wd, "lr_scale": decay ** (depth + 1 - i)})
        g["params"].append(p)
    print("Param groups:", json.dumps({k: {"n": len(v["params"]), "lr_scale": v["lr_scale"]} for k, v in found.items()}))
    return list(found.values())

def grad_norm(parameters, norm_type=2.0):
    ps = [p for p in parameters if p.grad is not None]
    device = ps[0].grad.device
    return torch.norm(torch.stack([torch.norm(p.grad.detach(), norm_type).to(device) for p in ps]), norm_type)

device = torch.device("cuda")
model = Beit().to(device)
optimizer = torch.optim.AdamW(groups(model), lr=5e-4)
for step in range(50):
    lr = 5e-4 * min(1, (step + 1) / 10) * 0.5 * (1 + math.cos(math.pi * step / 50))
    for g in optimizer.param_groups:
        g["lr"] = lr * g["lr_scale"]
    x, y = torch.randn(24, 3, 128, 128).to(device), torch.randint(100, (24,)).to(device)
    lam = 0.3
    x = x * lam + x.flip(0) * (1 - lam)
    one = torch.full((24, 100), 0.1 / 100, device=device).scatter_(1, y[:, None], 0.9)
    target = one * lam + one.flip(0) * (1 - lam)
    loss = torch.sum(-target * F.log_softmax(model(x), dim=-1), dim=-1).mean()
    if not math.isfinite(loss.item()):
        raise SystemExit(f"Loss is {loss.item()}, stopping training")
    optimizer.zero_grad()
    loss.backward()
    norm = grad_norm(model.parameters())
    optimizer.step()
    torch.cuda.synchronize()
    print(step, loss.item(), norm.item(), min(g["lr"] for g in optimizer.param_groups))

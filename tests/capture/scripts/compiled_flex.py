"""torch.compile in all its spellings, with flex attention and a compiled optimizer step."""
import torch
import torch._dynamo
from torch import nn
from torch.nn.attention.flex_attention import create_block_mask, flex_attention

torch._dynamo.config.cache_size_limit = 64
torch._inductor.config.coordinate_descent_tuning = True
flex = torch.compile(flex_attention, dynamic=False)


@torch.compile(fullgraph=True)
def squared_relu(x):
    return torch.relu(x).square()


def causal_in_document(documents):
    def rule(b, h, q, kv):
        return (q >= kv) & (documents[q] == documents[kv])
    return rule


class Block(nn.Module):
    def __init__(self, dim=512, heads=8):
        super().__init__()
        self.heads = heads
        self.qkv, self.proj = nn.Linear(dim, 3 * dim, bias=False), nn.Linear(dim, dim, bias=False)
        self.up, self.down = nn.Linear(dim, 4 * dim, bias=False), nn.Linear(4 * dim, dim, bias=False)

    def forward(self, x, mask):
        b, t, c = x.shape
        q, k, v = self.qkv(nn.functional.rms_norm(x, (c,))).view(b, t, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        y = flex(q, k, v, block_mask=mask)
        x = x + self.proj(y.transpose(1, 2).reshape(b, t, c))
        return x + self.down(squared_relu(self.up(nn.functional.rms_norm(x, (c,)))))


class Model(nn.Module):
    def __init__(self, vocabulary=8192, dim=512, depth=4):
        super().__init__()
        self.embed, self.blocks, self.head = nn.Embedding(vocabulary, dim), nn.ModuleList(Block(dim) for _ in range(depth)), nn.Linear(dim, vocabulary, bias=False)

    def forward(self, ids, targets):
        documents = (ids == 0).cumsum(0)
        mask = create_block_mask(causal_in_document(documents), None, None, len(ids), len(ids), device="cuda")
        x = self.embed(ids)[None].bfloat16()
        for block in self.blocks:
            x = block(x, mask)
        logits = 15 * torch.tanh(self.head(x).float() / 15)
        return nn.functional.cross_entropy(logits.view(-1, logits.size(-1)), targets)


model = Model().cuda()
for m in model.modules():
    if isinstance(m, nn.Linear):
        m.bfloat16()
model = torch.compile(model, mode="max-autotune-no-cudagraphs")
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)


@torch.compile(fullgraph=False)
def update():
    optimizer.step()


for step in range(5):
    ids = torch.randint(0, 8192, (1025,), device="cuda")
    loss = model(ids[:-1].to(torch.int32), ids[1:].long())
    loss.backward()
    update()
    model.zero_grad(set_to_none=True)
    print(step, loss.item())

import torch, torch.nn as nn
from torch.utils.checkpoint import checkpoint, checkpoint_sequential

class Block(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.norm, self.attn, self.mlp = nn.LayerNorm(d), nn.MultiheadAttention(d, 8, dropout=0.1, batch_first=True), nn.Sequential(nn.Linear(d, 4 * d), nn.GELU(), nn.Dropout(0.1), nn.Linear(4 * d, d))
    def forward(self, x):
        h = self.norm(x)
        x = x + self.attn(h, h, h, need_weights=False)[0]
        return x + self.mlp(x)

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.inp, self.blocks, self.tail = nn.Linear(32, 512), nn.ModuleList(Block(512) for _ in range(6)), nn.Sequential(*[nn.Linear(512, 512) for _ in range(4)])
    def forward(self, x):
        x = self.inp(x)
        for b in self.blocks:
            x = checkpoint(b, x, use_reentrant=True)
        return checkpoint_sequential(self.tail, 2, x, use_reentrant=True).mean()

net = Net().cuda()
opt = torch.optim.AdamW(net.parameters(), 1e-4, fused=True)
for _ in range(4):
    with torch.autocast("cuda", dtype=torch.bfloat16):
        loss = net(torch.randn(8, 256, 32, device="cuda"))
    loss.backward(); opt.step(); opt.zero_grad(set_to_none=True)
    torch.cuda.synchronize(); print(loss.item())

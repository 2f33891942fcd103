"""Gradual unfreezing, as in ULMFiT: only the head for the first epoch, then one more block per epoch with parameter groups added to the optimizer."""
# later: grows
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

blocks = nn.ModuleList(nn.Sequential(nn.Linear(512, 2048), nn.GELU(), nn.Linear(2048, 512), nn.LayerNorm(512)) for _ in range(4))
head = nn.Linear(512, 20)
for p in blocks.parameters():
    p.requires_grad = False
blocks.cuda(); head.cuda()
loader = DataLoader(TensorDataset(torch.randn(512, 512), torch.randint(20, (512,))), batch_size=256, shuffle=True)
optimizer = torch.optim.Adam(filter(lambda p: p.requires_grad, head.parameters()), lr=1e-3)
scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=1)
for epoch in range(5):
    if 0 < epoch <= 4:
        unfrozen = blocks[4 - epoch]
        for p in unfrozen.parameters():
            p.requires_grad = True
        optimizer.add_param_group({"params": unfrozen.parameters(), "lr": 1e-3 / 2.6 ** epoch})
    running = 0.
    for x, y in loader:
        x, y = x.cuda(non_blocking=True), y.cuda(non_blocking=True)
        h = x
        for b in blocks:
            h = h + b(h)
        loss = nn.functional.cross_entropy(head(h), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        running += loss.item() * x.size(0)
    scheduler.step(running)
    print(f"epoch {epoch}: {running / 512:.4f}, trainable {sum(p.numel() for p in [*blocks.parameters(), *head.parameters()] if p.requires_grad)}")

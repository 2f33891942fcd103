"""Lightning Fabric: setup, autocast, no_backward_sync, a compiled model, clip and save."""
import lightning as L
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

fabric = L.Fabric(accelerator="cuda", devices=1, precision="bf16-mixed")
fabric.launch()
fabric.seed_everything(4)
with fabric.init_module():
    model = nn.Sequential(nn.Linear(512, 2048), nn.GELU(), nn.LayerNorm(2048), nn.Linear(2048, 2048), nn.GELU(), nn.Linear(2048, 50))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
model, optimizer = fabric.setup(model, optimizer)
loader = fabric.setup_dataloaders(DataLoader(TensorDataset(torch.randn(2048, 512), torch.randint(50, (2048,))), 256, shuffle=True))
for epoch in range(2):
    for i, (x, y) in enumerate(loader):
        syncing = (i + 1) % 2 == 0
        with fabric.no_backward_sync(model, enabled=not syncing):
            loss = nn.functional.cross_entropy(model(x), y)
            fabric.backward(loss / 2)
        if syncing:
            fabric.clip_gradients(model, optimizer, max_norm=1.0)
            optimizer.step()
            optimizer.zero_grad()
            fabric.print(epoch, i, loss.item(), fabric.all_reduce(loss).item())
    fabric.save("state.ckpt", {"model": model, "optimizer": optimizer})

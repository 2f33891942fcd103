import copy, torch, torch.nn as nn
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

model = nn.Sequential(nn.Linear(784, 2048), nn.GELU(), nn.LayerNorm(2048), nn.Linear(2048, 2048), nn.GELU(), nn.Linear(2048, 10)).cuda()
shadow = copy.deepcopy(model).eval()
for p in shadow.parameters():
    p.requires_grad_(False)
average = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(0.999))
opt = torch.optim.RMSprop(model.parameters(), 1e-3, momentum=0.9)
for i in range(6):
    x, y = torch.randn(512, 784, device="cuda"), torch.randint(10, (512,), device="cuda")
    loss = nn.functional.cross_entropy(model(x), y)
    opt.zero_grad(); loss.backward(); opt.step()
    with torch.no_grad():
        for e, p in zip(shadow.parameters(), model.parameters()):
            e.lerp_(p, 0.001)
    average.update_parameters(model)
    print(i, loss.item(), (model(x).argmax(1) == y).float().mean().item())

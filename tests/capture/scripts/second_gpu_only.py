"""A script that was written for the second GPU of a shared machine: everything on cuda:1, with set_device in one helper and strings elsewhere."""
# devices: 2
import torch
from torch import nn

GPU = 1
torch.cuda.set_device(GPU)
model = nn.Sequential(nn.Linear(784, 2048), nn.Dropout(0.2), nn.ReLU(), nn.Linear(2048, 2048), nn.ReLU(), nn.Linear(2048, 10)).cuda()
model = model.to(f"cuda:{GPU}")
opt = torch.optim.Adam(model.parameters(), lr=1e-3, amsgrad=True)
for i in range(6):
    x, y = torch.rand(256, 784).cuda(GPU), torch.randint(10, (256,), device=f"cuda:{GPU}")
    loss = nn.functional.nll_loss(torch.log_softmax(model(x), 1), y)
    opt.zero_grad(); loss.backward(); opt.step()
    print(i, loss.item(), torch.cuda.memory_allocated(GPU), torch.cuda.memory_allocated(f"cuda:{GPU}"))

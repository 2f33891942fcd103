"""Every spelling of the device: integers, indexes, legacy tensor types, .type(), .to(other), contexts, non-default cuda calls, is_cuda tests, get_device."""
import os
os.environ["CUDA_VISIBLE_DEVICES"] = "0"
import torch
import torch.nn as nn

assert torch.cuda.is_available(), "needs a GPU"
use_cuda = torch.cuda.is_available()
dtype = torch.cuda.FloatTensor if use_cuda else torch.FloatTensor
ltype = torch.cuda.LongTensor if use_cuda else torch.LongTensor
print(torch.cuda.get_device_name(0), torch.cuda.get_device_capability(), torch.cuda.current_device(), torch.version.cuda, torch.backends.cudnn.version())
torch.backends.cudnn.benchmark = True
torch.backends.cudnn.deterministic = False

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b, self.c, self.d = nn.Linear(300, 600), nn.Linear(600, 600), nn.Linear(600, 600), nn.Linear(600, 7)
        self.noise = torch.zeros(1)
    def forward(self, x):
        if x.is_cuda:
            self.noise = self.noise.cuda(x.get_device())
        eps = torch.cuda.FloatTensor(x.size(0), 600).normal_() if x.is_cuda else torch.randn(x.size(0), 600)
        x = torch.relu(self.a(x)) + eps * 0.01 + self.noise
        x = torch.relu(self.b(x.to(self.b.weight)))
        x = torch.relu(self.c(x.type_as(self.c.weight)))
        return self.d(x.to(x.device, x.dtype))

with torch.cuda.device(0):
    model = Net().cuda(0)
model = model.to(0).to("cuda").to(torch.device("cuda", 0)).to(device="cuda:0", dtype=torch.float32)
weights = torch.ones(7).type(dtype)
criterion = nn.CrossEntropyLoss(weights).to(torch.cuda.current_device())
optimizer = torch.optim.Adagrad(model.parameters(), lr=0.01, lr_decay=1e-5)
class_ids = torch.arange(7, device=torch.device(type="cuda", index=0))
lookup = ltype([0, 1, 2, 3, 4, 5, 6])
for i in range(6):
    x = torch.autograd.Variable(torch.rand(1024, 300).type(dtype), requires_grad=False)
    y = torch.randint(0, 7, (1024,)).cuda(device=0, non_blocking=True)
    assert x.is_cuda and x.device.type == "cuda" and next(model.parameters()).is_cuda and x.device == torch.device("cuda:0"), x.device
    h = x.new_zeros(1024, 7) + torch.zeros_like(x[:, :7]) + x.new(1024, 7).fill_(0)
    out = model(x) + h + torch.eye(7, device=x.device).to(y.device)[y] * 0
    loss = criterion(out, lookup[y])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(i, loss.cpu().data.numpy(), loss.data.item(), out.data.max(1, keepdim=True)[1].eq(y.data.view_as(out.data.max(1, keepdim=True)[1])).cpu().sum().item(),
          f"{torch.cuda.memory_reserved(0) / 1024 ** 2:.0f} MiB", (class_ids[None] == y[:, None]).sum().item())

"""CUDA graphs: make_graphed_callables for the network, a whole step captured by hand with static inputs after a warm-up on a side stream, replayed."""
import torch
from torch import nn

D_in, H, D_out, N = 640, 4096, 1024, 256
module1 = nn.Sequential(nn.Linear(D_in, H), nn.Dropout(p=0.1)).cuda()
module2 = nn.Sequential(nn.Linear(H, D_out), nn.Dropout(p=0.2)).cuda()
loss_fn = nn.MSELoss()
optimizer = torch.optim.Adam([*module1.parameters(), *module2.parameters()], lr=1e-3, capturable=True)
static_input, static_target = torch.randn(N, D_in, device="cuda"), torch.randn(N, D_out, device="cuda")
s = torch.cuda.Stream()
s.wait_stream(torch.cuda.current_stream())
with torch.cuda.stream(s):
    for i in range(3):
        optimizer.zero_grad(set_to_none=True)
        loss = loss_fn(module2(module1(static_input)), static_target)
        loss.backward()
        optimizer.step()
torch.cuda.current_stream().wait_stream(s)
g = torch.cuda.CUDAGraph()
optimizer.zero_grad(set_to_none=True)
with torch.cuda.graph(g):
    static_loss = loss_fn(module2(module1(static_input)), static_target)
    static_loss.backward()
    optimizer.step()
for _ in range(5):
    static_input.copy_(torch.randn(N, D_in)); static_target.copy_(torch.randn(N, D_out))
    g.replay()
    print(static_loss.item())

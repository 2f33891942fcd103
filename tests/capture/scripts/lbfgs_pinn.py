import torch, torch.nn as nn

net = nn.Sequential(nn.Linear(2, 256), nn.Tanh(), nn.Linear(256, 256), nn.Tanh(), nn.Linear(256, 1)).cuda()
adam = torch.optim.Adam(net.parameters(), 1e-3)
points = torch.rand(20000, 2, device="cuda", requires_grad=True)
def residual():
    u = net(points)
    du = torch.autograd.grad(u, points, torch.ones_like(u), create_graph=True)[0]
    d2 = torch.autograd.grad(du[:, 0], points, torch.ones_like(du[:, 0]), create_graph=True)[0]
    return ((du[:, 1:] - d2[:, :1]) ** 2).mean() + (net(torch.zeros(100, 2, device="cuda")) ** 2).mean()
for _ in range(3):
    adam.zero_grad(); loss = residual(); loss.backward(); adam.step()
lbfgs = torch.optim.LBFGS(net.parameters(), max_iter=5, line_search_fn="strong_wolfe")
def closure():
    lbfgs.zero_grad(); loss = residual(); loss.backward(); return loss
for _ in range(2):
    lbfgs.step(closure)

import torch, torch.nn as nn

critic = nn.Sequential(nn.Conv2d(1, 64, 5, 2, 2), nn.LeakyReLU(0.2), nn.Conv2d(64, 128, 5, 2, 2), nn.LeakyReLU(0.2), nn.Flatten(), nn.Linear(128 * 49, 1)).cuda()
gen = nn.Sequential(nn.Linear(64, 784), nn.Tanh(), nn.Unflatten(1, (1, 28, 28))).cuda()
oc, og = torch.optim.Adam(critic.parameters(), 1e-4), torch.optim.Adam(gen.parameters(), 1e-4)
for i in range(12):
    real, fake = torch.rand(64, 1, 28, 28).cuda(), gen(torch.randn(64, 64).cuda())
    eps = torch.rand(64, 1, 1, 1, device="cuda")
    mixed = (eps * real + (1 - eps) * fake.detach()).requires_grad_(True)
    (grad,) = torch.autograd.grad(critic(mixed).sum(), mixed, create_graph=True, retain_graph=True)
    penalty = ((grad.view(64, -1).norm(2, dim=1) - 1) ** 2).mean()
    loss = critic(fake.detach()).mean() - critic(real).mean() + 10 * penalty
    oc.zero_grad(); loss.backward(); oc.step()
    if i % 5 == 4:
        og.zero_grad(); (-critic(gen(torch.randn(64, 64).cuda())).mean()).backward(); og.step()
    print(loss.item())

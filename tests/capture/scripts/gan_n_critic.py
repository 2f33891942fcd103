"""A GAN that alternates phases: five critic steps for each generator step, so that the generator's optimizer makes its state in the sixth step."""
# later: grows
import torch
import torch.nn as nn

latent, critics = 128, 5
G = nn.Sequential(nn.Linear(latent, 1024), nn.BatchNorm1d(1024), nn.ReLU(), nn.Linear(1024, 2048), nn.BatchNorm1d(2048), nn.ReLU(), nn.Linear(2048, 3 * 32 * 32), nn.Tanh()).cuda()
D = nn.Sequential(nn.Linear(3 * 32 * 32, 512), nn.LeakyReLU(.2), nn.Linear(512, 256), nn.LeakyReLU(.2), nn.Linear(256, 1)).cuda()
optG, optD = torch.optim.Adam(G.parameters(), lr=5e-5), torch.optim.RMSprop(D.parameters(), lr=5e-5)
for i in range(14):
    real = torch.randn(64, 3 * 32 * 32).cuda()
    z = torch.randn(64, latent, device="cuda")
    optD.zero_grad()
    fake = G(z).detach()
    loss_d = -torch.mean(D(real)) + torch.mean(D(fake))
    loss_d.backward()
    optD.step()
    for p in D.parameters():
        p.data.clamp_(-0.01, 0.01)
    if (i + 1) % critics == 0:
        optG.zero_grad()
        loss_g = -torch.mean(D(G(z)))
        loss_g.backward()
        optG.step()
        print(i, loss_d.item(), loss_g.item())

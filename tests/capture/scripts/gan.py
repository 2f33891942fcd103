import torch, torch.nn as nn

def up(i, o): return [nn.ConvTranspose2d(i, o, 4, 2, 1, bias=False), nn.BatchNorm2d(o), nn.ReLU(True)]
def down(i, o): return [nn.Conv2d(i, o, 4, 2, 1, bias=False), nn.BatchNorm2d(o), nn.LeakyReLU(0.2, True)]
def init(m):
    if isinstance(m, (nn.Conv2d, nn.ConvTranspose2d)): nn.init.normal_(m.weight.data, 0.0, 0.02)
    elif isinstance(m, nn.BatchNorm2d): nn.init.normal_(m.weight.data, 1.0, 0.02); nn.init.constant_(m.bias.data, 0)

device = torch.device("cuda:0")
G = nn.Sequential(nn.ConvTranspose2d(100, 512, 4, 1, 0, bias=False), nn.BatchNorm2d(512), nn.ReLU(True), *up(512, 256), *up(256, 128),
                  *up(128, 64), nn.ConvTranspose2d(64, 3, 4, 2, 1), nn.Tanh()).to(device).apply(init)
D = nn.Sequential(*down(3, 64), *down(64, 128), *down(128, 256), *down(256, 512), nn.Conv2d(512, 1, 4), nn.Sigmoid()).to(device).apply(init)
criterion, fixed = nn.BCELoss(), torch.randn(64, 100, 1, 1, device=device)
optD = torch.optim.Adam(D.parameters(), lr=2e-4, betas=(0.5, 0.999))
optG = torch.optim.Adam(G.parameters(), lr=2e-4, betas=(0.5, 0.999))
for i in range(5):
    D.zero_grad()
    real = torch.randn(128, 3, 64, 64).to(device)
    label = torch.full((128,), 1.0, dtype=torch.float, device=device)
    out = D(real).view(-1); errD_real = criterion(out, label); errD_real.backward(); D_x = out.mean().item()
    fake = G(torch.randn(128, 100, 1, 1, device=device)); label.fill_(0.0)
    out = D(fake.detach()).view(-1); errD_fake = criterion(out, label); errD_fake.backward(); optD.step()
    G.zero_grad(); label.fill_(1.0)
    errG = criterion(D(fake).view(-1), label); errG.backward(); optG.step()
    print(i, (errD_real + errD_fake).item(), errG.item(), D_x)
    with torch.no_grad(): images = G(fixed).detach().cpu()

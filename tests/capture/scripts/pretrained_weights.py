"""Pretrained weights of torchvision, timm and torch.hub by name: shapes suffice, so it is recorded without a download, or says which file it lacks."""
import timm
import torch
import torchvision
from torch import nn

a = torchvision.models.resnet18(weights=torchvision.models.ResNet18_Weights.DEFAULT)
a.fc = nn.Linear(a.fc.in_features, 37)
b = timm.create_model("vit_tiny_patch16_224", pretrained=True, num_classes=37)
a, b = a.cuda(), b.cuda()
for p in a.parameters():
    p.requires_grad_(False)
a.fc.requires_grad_(True)
opt = torch.optim.AdamW([p for p in [*a.parameters(), *b.parameters()] if p.requires_grad], 1e-4)
for i in range(4):
    x, y = torch.randn(4, 3, 224, 224).cuda(), torch.randint(37, (4,)).cuda()
    loss = nn.functional.cross_entropy(a(x), y) + nn.functional.cross_entropy(b(x), y)
    opt.zero_grad(); loss.backward(); opt.step()
    print(i, loss.item())

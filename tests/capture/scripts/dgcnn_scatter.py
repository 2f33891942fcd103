"""Dynamic edge convolutions on point clouds, and a voxel encoder with scatter_reduce, bincount and index_put; the point augmentation is numpy."""
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

def knn(x, k):
    inner = -2 * torch.matmul(x.transpose(2, 1), x)
    xx = torch.sum(x ** 2, dim=1, keepdim=True)
    return (-xx - inner - xx.transpose(2, 1)).topk(k=k, dim=-1)[1]

def get_graph_feature(x, k=16):
    b, c, n = x.size()
    idx = knn(x, k)
    idx = (idx + torch.arange(0, b, device=torch.device('cuda')).view(-1, 1, 1) * n).view(-1)
    x = x.transpose(2, 1).contiguous()
    feature = x.view(b * n, -1)[idx, :].view(b, n, k, c)
    x = x.view(b, n, 1, c).repeat(1, 1, k, 1)
    return torch.cat((feature - x, x), dim=3).permute(0, 3, 1, 2).contiguous()

class DGCNN(nn.Module):
    def __init__(self, out=40):
        super().__init__()
        conv = lambda i, o: nn.Sequential(nn.Conv2d(i, o, 1, bias=False), nn.BatchNorm2d(o), nn.LeakyReLU(0.2))
        self.c1, self.c2, self.c3 = conv(6, 32), conv(64, 32), conv(64, 64)
        self.c5 = nn.Sequential(nn.Conv1d(128, 256, 1, bias=False), nn.BatchNorm1d(256), nn.LeakyReLU(0.2))
        self.voxel = nn.Linear(3, 32)
        self.l1, self.bn6, self.dp1, self.l2 = nn.Linear(512 + 32, 256, bias=False), nn.BatchNorm1d(256), nn.Dropout(p=0.5), nn.Linear(256, out)
    def voxels(self, pts, grid=8):
        b, _, n = pts.shape
        flat = pts.transpose(1, 2).reshape(-1, 3)
        cell = ((flat.clamp(-1, 0.999) + 1) / 2 * grid).long()
        index = cell[:, 0] * grid * grid + cell[:, 1] * grid + cell[:, 2] + torch.arange(b, device=pts.device).repeat_interleave(n) * grid ** 3
        feats = F.relu(self.voxel(flat))
        out = torch.zeros(b * grid ** 3, 32, device=pts.device).scatter_reduce(0, index[:, None].expand(-1, 32), feats, reduce="amax", include_self=False)
        count = torch.bincount(index, minlength=b * grid ** 3)
        occupied = torch.zeros(b * grid ** 3, device=pts.device)
        occupied[index] = 1.0
        return (out * occupied[:, None] / count.clamp(min=1)[:, None]).view(b, -1, 32).sum(1)
    def forward(self, x):
        b = x.size(0)
        v = self.voxels(x)
        x1 = self.c1(get_graph_feature(x)).max(dim=-1, keepdim=False)[0]
        x2 = self.c2(get_graph_feature(x1)).max(dim=-1, keepdim=False)[0]
        x3 = self.c3(get_graph_feature(x2)).max(dim=-1, keepdim=False)[0]
        x = self.c5(torch.cat((x1, x2, x3), dim=1))
        x = torch.cat((F.adaptive_max_pool1d(x, 1).view(b, -1), F.adaptive_avg_pool1d(x, 1).view(b, -1), v), 1)
        return self.l2(self.dp1(F.leaky_relu(self.bn6(self.l1(x)), negative_slope=0.2)))

def cal_loss(pred, gold, eps=0.2):
    n = pred.size(1)
    one_hot = torch.zeros_like(pred).scatter(1, gold.contiguous().view(-1).view(-1, 1), 1)
    one_hot = one_hot * (1 - eps) + (1 - one_hot) * eps / (n - 1)
    return -(one_hot * F.log_softmax(pred, dim=1)).sum(dim=1).mean()

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
model = nn.DataParallel(DGCNN().to(device), device_ids=[0])
print("Let's use", torch.cuda.device_count(), "GPUs!")
opt = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=1e-4)
train_pred, train_true = [], []
for it in range(8):
    pts = np.random.uniform(-1, 1, (8, 256, 3)).astype("float32") * np.random.uniform(2 / 3, 3 / 2, (1, 1, 3)).astype("float32")
    data, label = torch.from_numpy(pts).to(device).permute(0, 2, 1), torch.randint(40, (8,)).to(device).squeeze()
    opt.zero_grad()
    logits = model(data)
    loss = cal_loss(logits, label)
    loss.backward()
    opt.step()
    preds = logits.max(dim=1)[1]
    train_true.append(label.cpu().numpy()); train_pred.append(preds.detach().cpu().numpy())
    print(it, loss.item() * 8, np.mean(np.concatenate(train_true) == np.concatenate(train_pred)))

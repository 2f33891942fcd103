"""Two graph networks over one graph: sparse matrix products, and messages by gather and index_add_; training by a boolean mask."""
import torch
import torch.nn as nn
import torch.nn.functional as F

nodes, edges = 2000, 12000
where = torch.stack([torch.randint(nodes, (edges,)), torch.randint(nodes, (edges,))])
adjacency = torch.sparse_coo_tensor(where, torch.ones(edges), (nodes, nodes)).coalesce().to("cuda")
where = where.to("cuda")
features, labels = torch.rand(nodes, 256).to("cuda"), torch.randint(7, (nodes,)).to("cuda")
train = (torch.rand(nodes) < 0.3).to("cuda")


class Convolution(nn.Module):
    def __init__(self, i, o):
        super().__init__()
        self.weight, self.bias = nn.Parameter(torch.empty(i, o)), nn.Parameter(torch.zeros(o))
        nn.init.xavier_uniform_(self.weight)

    def forward(self, x):
        return torch.sparse.mm(adjacency, x @ self.weight) + self.bias


class Attention(nn.Module):
    def __init__(self, i, o):
        super().__init__()
        self.w, self.a = nn.Linear(i, o, bias=False), nn.Linear(2 * o, 1)

    def forward(self, x):
        h = self.w(x)
        source, target = where
        e = F.leaky_relu(self.a(torch.cat([h[source], h[target]], 1)), 0.2).squeeze(1)
        top = torch.full((nodes,), -1e9, device=x.device).scatter_reduce_(0, target, e, "amax")
        e = (e - top[target]).exp()
        total = torch.zeros(nodes, device=x.device).index_add_(0, target, e)
        return torch.zeros_like(h).index_add_(0, target, h[source] * (e / total[target].clamp(min=1e-9)).unsqueeze(1))


one, two = Convolution(256, 64).cuda(), Attention(64, 7).cuda()
optimizer = torch.optim.Adam([{"params": one.parameters(), "weight_decay": 5e-4}, {"params": two.parameters()}], lr=0.01)
for epoch in range(200):
    optimizer.zero_grad()
    out = two(F.dropout(F.relu(one(features)), 0.5))
    loss = F.cross_entropy(out[train], labels[train])
    loss.backward()
    optimizer.step()
    if epoch % 10 == 0:
        print(epoch, float(loss), float((out[~train].argmax(1) == labels[~train]).float().mean()))

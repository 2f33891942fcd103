"""torch_geometric: GCN and GATv2 on batches of graphs of different sizes, global pooling, and a full graph with a train mask."""
import torch
import torch.nn.functional as F
from torch_geometric.data import Data
from torch_geometric.loader import DataLoader
from torch_geometric.nn import GATv2Conv, GCNConv, global_mean_pool
from torch_geometric.utils import add_self_loops, degree, to_undirected

torch.manual_seed(12)
def graph(n):
    edge = to_undirected(torch.randint(0, n, (2, 3 * n)))
    return Data(x=torch.randn(n, 64), edge_index=edge, y=torch.randint(0, 2, (1,)))

class Net(torch.nn.Module):
    def __init__(self, hidden=128):
        super().__init__()
        self.conv1, self.conv2, self.conv3 = GCNConv(64, hidden), GATv2Conv(hidden, hidden // 4, heads=4, dropout=0.2), GCNConv(hidden, hidden)
        self.lin = torch.nn.Linear(hidden, 2)
    def forward(self, x, edge_index, batch):
        x = F.elu(self.conv1(x, edge_index))
        x = F.elu(self.conv2(x, edge_index))
        x = F.dropout(self.conv3(x, edge_index), p=0.5, training=self.training)
        return self.lin(global_mean_pool(x, batch))

device = torch.device("cuda")
loader = DataLoader([graph(int(n)) for n in torch.randint(80, 120, (128,))], batch_size=32, shuffle=True)
model = Net().to(device)
optimizer = torch.optim.Adam(model.parameters(), lr=5e-4, weight_decay=5e-4)
for epoch in range(2):
    total = 0
    for data in loader:
        data = data.to(device)
        optimizer.zero_grad()
        out = model(data.x, data.edge_index, data.batch)
        loss = F.cross_entropy(out, data.y)
        loss.backward()
        optimizer.step()
        total += float(loss) * data.num_graphs
    print(epoch, total / 128)

"""The classic leak: losses and outputs appended to lists with their graphs, averaged at the end of the epoch. Each step holds its activations for ever."""
# later: grows
import torch
import torch.nn as nn

model = nn.Sequential(nn.Linear(1024, 1024), nn.ReLU(), nn.Linear(1024, 1024), nn.ReLU(), nn.Linear(1024, 10)).to(device='cuda')
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(model.parameters())
losses, outputs, total_loss = [], [], 0
for i in range(12):
    x = torch.randn(512, 1024).to('cuda')
    y = torch.randint(0, 10, (512,)).to('cuda')
    out = model(x)
    loss = criterion(out, y)
    optimizer.zero_grad()
    loss.backward(retain_graph=True)
    optimizer.step()
    losses.append(loss)
    outputs.append(out)
    total_loss += loss
print('epoch loss', (total_loss / len(losses)).item())

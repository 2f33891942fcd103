"""Cross-validation: a new model and optimizer for each fold, the models of all folds kept on the GPU for an ensemble. The first fold's two steps are not the peak."""
# later: grows
import numpy as np
import torch, torch.nn as nn
from torch.utils.data import DataLoader, Subset, TensorDataset

rng = np.random.default_rng(0)
X = torch.from_numpy(rng.normal(size=(600, 64)).astype(np.float32))
y = torch.from_numpy((rng.random(600) > .5).astype(np.float32))
data = TensorDataset(X, y)
folds = np.array_split(rng.permutation(len(data)), 5)

def build():
    return nn.Sequential(nn.Linear(64, 1024), nn.BatchNorm1d(1024), nn.ELU(), nn.Dropout(.3), nn.Linear(1024, 1024), nn.ELU(), nn.Linear(1024, 1))

models, scores = [], []
for k, val in enumerate(folds):
    train = np.concatenate([f for j, f in enumerate(folds) if j != k])
    model = build().cuda()
    opt = torch.optim.Adam(model.parameters(), lr=1e-3)
    lossf = nn.BCEWithLogitsLoss(pos_weight=torch.tensor([1.5]).cuda())
    for epoch in range(2):
        model.train()
        for xb, yb in DataLoader(Subset(data, train.tolist()), batch_size=160, shuffle=True):
            xb, yb = xb.cuda(), yb.cuda()
            opt.zero_grad()
            loss = lossf(model(xb).squeeze(1), yb)
            loss.backward()
            opt.step()
        model.eval()
        with torch.no_grad():
            p = torch.sigmoid(model(X[val].cuda())).squeeze(1).cpu().numpy()
        auc = float(((p > .5) == y[val].numpy()).mean())
        print(f"fold {k} epoch {epoch} loss {loss.item():.4f} acc {auc:.3f}")
    models.append(model)
    scores.append(auc)
print(np.mean(scores), np.std(scores))

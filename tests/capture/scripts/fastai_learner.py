"""fastai: DataLoaders over tensors, a Learner with mixed precision, fit_one_cycle, metrics and callbacks."""
import torch
from torch import nn
from fastai.callback.all import *
from fastai.data.all import *
from fastai.learner import Learner
from fastai.metrics import accuracy
from fastai.optimizer import ranger

x, y = torch.rand(256, 3, 32, 32), torch.randint(0, 10, (256,))
train, valid = TensorDataset(x[:192], y[:192]) if "TensorDataset" in globals() else list(zip(x[:192], y[:192])), list(zip(x[192:], y[192:]))
dls = DataLoaders.from_dsets(train, valid, bs=32, device="cuda")
net = nn.Sequential(nn.Conv2d(3, 32, 3, 2, 1), nn.BatchNorm2d(32), nn.ReLU(), nn.Conv2d(32, 64, 3, 2, 1), nn.BatchNorm2d(64), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10))
learn = Learner(dls, net, loss_func=nn.CrossEntropyLoss(), metrics=accuracy, opt_func=ranger, cbs=[GradientAccumulation(64), GradientClip(1.0)])
learn.fit_one_cycle(2, 1e-3)

"""pytorch-ignite: engines with handlers, an evaluator run every epoch, a running average, checkpoints in memory."""
import torch
from ignite.contrib.handlers import ProgressBar
from ignite.engine import Engine, Events, create_supervised_evaluator, create_supervised_trainer
from ignite.handlers import EarlyStopping, TerminateOnNan
from ignite.metrics import Accuracy, Loss, RunningAverage
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

device = "cuda"
net = nn.Sequential(nn.Conv2d(1, 32, 5), nn.MaxPool2d(2), nn.ReLU(), nn.Conv2d(32, 64, 5), nn.Dropout2d(), nn.MaxPool2d(2), nn.ReLU(), nn.Flatten(), nn.Linear(1024, 50), nn.ReLU(), nn.Linear(50, 10), nn.LogSoftmax(-1)).to(device)
data = TensorDataset(torch.rand(512, 1, 28, 28), torch.randint(10, (512,)))
train, val = DataLoader(data, 64, shuffle=True), DataLoader(data, 64)
optimizer, criterion = torch.optim.SGD(net.parameters(), 0.01, momentum=0.5), nn.NLLLoss()
trainer = create_supervised_trainer(net, optimizer, criterion, device=device, gradient_accumulation_steps=2)
evaluator = create_supervised_evaluator(net, metrics={"accuracy": Accuracy(), "nll": Loss(criterion)}, device=device)
RunningAverage(output_transform=lambda x: x).attach(trainer, "loss")
trainer.add_event_handler(Events.ITERATION_COMPLETED, TerminateOnNan())
@trainer.on(Events.ITERATION_COMPLETED(every=2))
def log(engine):
    print(engine.state.iteration, engine.state.metrics["loss"])
@trainer.on(Events.EPOCH_COMPLETED | Events.STARTED)
def evaluate(engine):
    evaluator.run(val)
    print(evaluator.state.metrics)
trainer.run(train, max_epochs=2)

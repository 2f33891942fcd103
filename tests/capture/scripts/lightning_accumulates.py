"""Lightning with automatic optimization: accumulation of four, clipping, sanity validation, a checkpoint and early stopping callback, stochastic weight averaging late, self.log of everything, a scheduler by step."""
# later: grows
import lightning as L
import torch
from lightning.pytorch.callbacks import EarlyStopping, LearningRateMonitor, ModelCheckpoint, StochasticWeightAveraging
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from torchmetrics import Accuracy

class Module(L.LightningModule):
    def __init__(self, width=1024, lr=1e-3):
        super().__init__()
        self.save_hyperparameters()
        self.net = nn.Sequential(nn.Flatten(), nn.Linear(784, width), nn.ReLU(), nn.BatchNorm1d(width), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 10))
        self.acc = Accuracy(task="multiclass", num_classes=10)
        self.example_input_array = torch.zeros(2, 1, 28, 28)
    def forward(self, x):
        return self.net(x)
    def training_step(self, batch, batch_idx):
        x, y = batch
        logits = self(x)
        loss = nn.functional.cross_entropy(logits, y)
        self.log_dict({"train_loss": loss, "train_acc": self.acc(logits, y)}, prog_bar=True, on_step=True, on_epoch=True)
        return loss
    def validation_step(self, batch, batch_idx):
        x, y = batch
        self.log("val_loss", nn.functional.cross_entropy(self(x), y), prog_bar=True, sync_dist=True)
    def configure_optimizers(self):
        opt = torch.optim.AdamW(self.parameters(), lr=self.hparams.lr)
        return {"optimizer": opt, "lr_scheduler": {"scheduler": torch.optim.lr_scheduler.OneCycleLR(opt, self.hparams.lr, total_steps=100), "interval": "step"}}

def main():
    L.seed_everything(1, workers=True)
    data = TensorDataset(torch.rand(1024, 1, 28, 28), torch.randint(10, (1024,)))
    trainer = L.Trainer(accelerator="gpu", devices=1, max_epochs=4, accumulate_grad_batches=4, gradient_clip_val=1.0, precision="bf16-mixed", log_every_n_steps=1, enable_progress_bar=False,
                        callbacks=[ModelCheckpoint(monitor="val_loss", save_top_k=1), EarlyStopping("val_loss", patience=5), StochasticWeightAveraging(1e-3, swa_epoch_start=2)], logger=False)
    trainer.fit(Module(), DataLoader(data, 64, shuffle=True), DataLoader(data, 512))

if __name__ == "__main__":
    main()

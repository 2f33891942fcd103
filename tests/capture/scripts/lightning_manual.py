"""Lightning with two optimizers by hand, 16-mixed, callbacks, a data module and an evaluation loop."""
import lightning as L
import torch, torch.nn as nn, torch.nn.functional as F
from lightning.pytorch.callbacks import Callback, GradientAccumulationScheduler, LearningRateMonitor, ModelSummary
from torch.utils.data import DataLoader, TensorDataset

class Data(L.LightningDataModule):
    def setup(self, stage=None):
        self.train, self.val = (TensorDataset(torch.rand(n, 3, 32, 32)) for n in (64, 32))
    def train_dataloader(self):
        return DataLoader(self.train, 16, shuffle=True)
    def val_dataloader(self):
        return DataLoader(self.val, 32)

class Averages(Callback):
    def on_fit_start(self, trainer, module):
        self.kept = {k: v.detach().clone() for k, v in module.generator.state_dict().items()}
    def on_train_batch_end(self, trainer, module, *args):
        with torch.no_grad():
            for k, v in module.generator.state_dict().items():
                if v.is_floating_point(): self.kept[k].mul_(0.99).add_(v, alpha=0.01)

class Gan(L.LightningModule):
    def __init__(self, latent=100, lr=2e-4):
        super().__init__()
        self.save_hyperparameters()
        self.automatic_optimization = False
        self.generator = nn.Sequential(nn.Linear(latent, 256 * 16), nn.Unflatten(1, (256, 4, 4)), nn.ConvTranspose2d(256, 128, 4, 2, 1), nn.BatchNorm2d(128), nn.ReLU(True), nn.ConvTranspose2d(128, 64, 4, 2, 1),
                                       nn.BatchNorm2d(64), nn.ReLU(True), nn.ConvTranspose2d(64, 3, 4, 2, 1), nn.Tanh())
        self.critic = nn.Sequential(nn.Conv2d(3, 64, 4, 2, 1), nn.LeakyReLU(0.2, True), nn.Conv2d(64, 128, 4, 2, 1), nn.LeakyReLU(0.2, True), nn.Flatten(), nn.Linear(8192, 1))
        self.example_input_array = torch.zeros(2, latent)
    def forward(self, z):
        return self.generator(z)
    def training_step(self, batch, index):
        (images,) = batch; og, oc = self.optimizers()
        z = torch.randn(len(images), self.hparams.latent).type_as(images)
        self.toggle_optimizer(og)
        g = F.binary_cross_entropy_with_logits(self.critic(self(z)), torch.ones(len(images), 1, device=self.device))
        self.manual_backward(g); self.clip_gradients(og, gradient_clip_val=0.5, gradient_clip_algorithm="norm"); og.step(); og.zero_grad(); self.untoggle_optimizer(og)
        self.toggle_optimizer(oc)
        real = F.binary_cross_entropy_with_logits(self.critic(images), torch.ones(len(images), 1).type_as(images))
        fake = F.binary_cross_entropy_with_logits(self.critic(self(z).detach()), torch.zeros(len(images), 1).type_as(images))
        self.manual_backward((real + fake) / 2); oc.step(); oc.zero_grad(); self.untoggle_optimizer(oc)
        self.log_dict({"g": g, "d": real + fake}, prog_bar=True)
    def validation_step(self, batch, index):
        self.log("val", self.critic(batch[0]).mean())
    def configure_optimizers(self):
        return [torch.optim.Adam(m.parameters(), self.hparams.lr, betas=(0.5, 0.999)) for m in (self.generator, self.critic)], []

L.seed_everything(3, workers=True)
L.Trainer(max_epochs=2, accelerator="gpu", devices=1, precision="16-mixed", callbacks=[Averages(), ModelSummary(2)], logger=False, enable_checkpointing=False, enable_progress_bar=False, num_sanity_val_steps=1).fit(Gan(), datamodule=Data())

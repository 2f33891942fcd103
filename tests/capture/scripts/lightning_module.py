import lightning as L, torch, torch.nn.functional as F, torchvision

class Lit(L.LightningModule):
    def __init__(self, lr=1e-3):
        super().__init__()
        self.save_hyperparameters()
        self.net = torchvision.models.resnet18(num_classes=10)
    def training_step(self, batch, _):
        x, y = batch
        out = self.net(x)
        loss = F.cross_entropy(out, y)
        self.log_dict({"loss": loss, "accuracy": (out.argmax(1) == y).float().mean()}, prog_bar=True)
        return loss
    def validation_step(self, batch, _):
        self.log("val_loss", F.cross_entropy(self.net(batch[0]), batch[1]))
    def configure_optimizers(self):
        optimizer = torch.optim.AdamW(self.parameters(), self.hparams.lr)
        return [optimizer], [torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 10)]

data = torch.utils.data.TensorDataset(torch.randn(96, 3, 128, 128), torch.randint(0, 10, (96,)))
loader = torch.utils.data.DataLoader(data, 16, shuffle=True)
trainer = L.Trainer(accelerator="gpu", devices=1, precision="16-mixed", max_epochs=1, accumulate_grad_batches=1, gradient_clip_val=0.5, logger=False, enable_checkpointing=False, log_every_n_steps=1)
trainer.fit(Lit(), loader, loader)

import torch
from neuralop import H1Loss, LpLoss, Trainer
from neuralop.models import FNO
from neuralop.training import AdamW

class Data(torch.utils.data.Dataset):
    def __len__(self): return 64
    def __getitem__(self, i): return {"x": torch.randn(1, 64, 64), "y": torch.randn(1, 64, 64)}

loader = torch.utils.data.DataLoader(Data(), 8)
model = FNO(n_modes=(16, 16), in_channels=1, out_channels=1, hidden_channels=32, projection_channel_ratio=2).to("cuda")
optimizer = AdamW(model.parameters(), lr=8e-3, weight_decay=1e-4)
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=30)
trainer = Trainer(model=model, n_epochs=1, device="cuda", wandb_log=False, eval_interval=3, use_distributed=False, verbose=True)
trainer.train(train_loader=loader, test_loaders={64: loader}, optimizer=optimizer, scheduler=schedule, regularizer=False, training_loss=H1Loss(d=2), eval_losses={"l2": LpLoss(d=2, p=2)})

"""MONAI: transforms on dictionaries, a UNet, DiceCE, an inferer, decollation and a metric at the end of the epoch."""
import torch
from monai.data import DataLoader, Dataset, decollate_batch
from monai.inferers import sliding_window_inference
from monai.losses import DiceCELoss
from monai.metrics import DiceMetric
from monai.networks.nets import UNet
from monai.transforms import AsDiscrete, Compose, EnsureTyped, RandFlipd, RandSpatialCropd, ScaleIntensityd
import numpy as np

rows = [{"image": np.random.rand(1, 64, 64, 64).astype("float32"), "label": np.random.randint(0, 2, (1, 64, 64, 64)).astype("float32")} for _ in range(6)]
train = Dataset(rows, Compose([ScaleIntensityd("image"), RandSpatialCropd(["image", "label"], (48, 48, 48), random_size=False), RandFlipd(["image", "label"], 0.5, 0), EnsureTyped(["image", "label"])]))
loader = DataLoader(train, batch_size=2, shuffle=True, num_workers=0)
device = torch.device("cuda:0")
model = UNet(3, 1, 2, (8, 16, 32, 64), (2, 2, 2), num_res_units=2, norm="batch").to(device)
loss_function, metric = DiceCELoss(to_onehot_y=True, softmax=True), DiceMetric(include_background=False, reduction="mean")
optimizer, post = torch.optim.Adam(model.parameters(), 1e-4), AsDiscrete(argmax=True, to_onehot=2)
for epoch in range(2):
    model.train()
    for batch in loader:
        x, y = batch["image"].to(device), batch["label"].to(device)
        optimizer.zero_grad()
        loss = loss_function(model(x), y)
        loss.backward()
        optimizer.step()
        print(epoch, f"{loss.item():.4f}")
    model.eval()
    with torch.no_grad():
        x = torch.as_tensor(rows[0]["image"])[None].to(device)
        out = [post(o) for o in decollate_batch(sliding_window_inference(x, (48, 48, 48), 2, model))]
        metric(y_pred=out, y=[AsDiscrete(to_onehot=2)(torch.as_tensor(rows[0]["label"]).to(device))])
        print("dice", metric.aggregate().item())

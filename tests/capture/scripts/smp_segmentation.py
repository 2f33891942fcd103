"""segmentation_models_pytorch with kornia's augmentation on the GPU, Lovasz and focal losses, a frozen encoder for the first epoch."""
# later: grows
import kornia.augmentation as K
import segmentation_models_pytorch as smp
import torch

model = smp.Unet("resnet18", encoder_weights=None, in_channels=3, classes=4, decoder_attention_type="scse").to("cuda")
augment = K.AugmentationSequential(K.RandomHorizontalFlip(p=0.5), K.ColorJitter(0.1, 0.1, 0.1, 0.1, p=1.0), data_keys=["input", "mask"]).to("cuda")
dice, focal = smp.losses.DiceLoss("multiclass"), smp.losses.FocalLoss("multiclass")
for p in model.encoder.parameters():
    p.requires_grad = False
opt = torch.optim.Adam([{"params": model.decoder.parameters(), "lr": 1e-3}, {"params": model.encoder.parameters(), "lr": 1e-4}])
for epoch in range(2):
    if epoch == 1:
        for p in model.encoder.parameters():
            p.requires_grad = True
    for i in range(3):
        x, y = torch.rand(4, 3, 96, 96).to("cuda"), torch.randint(0, 4, (4, 1, 96, 96)).float().to("cuda")
        x, y = augment(x, y)
        y = y.squeeze(1).long()
        out = model(x)
        loss = dice(out, y) + focal(out, y)
        opt.zero_grad(); loss.backward(); opt.step()
        tp, fp, fn, tn = smp.metrics.get_stats(out.argmax(1), y, mode="multiclass", num_classes=4)
        print(epoch, i, loss.item(), smp.metrics.iou_score(tp, fp, fn, tn, reduction="micro").item())

# job: {"model": {"preset": "vit-base"}, "training": {"batch_size": 8, "image_size": 224, "precision": "fp32", "optimizer": "adamw"}}
import torch
from transformers import ViTConfig, ViTForImageClassification

model = ViTForImageClassification(ViTConfig(num_labels=1000)).to("cuda").train()
opt = torch.optim.AdamW(model.parameters(), 5e-5)
for i in range(3):
    batch = {"pixel_values": torch.randn(8, 3, 224, 224), "labels": torch.randint(0, 1000, (8,))}
    batch = {k: v.to("cuda") for k, v in batch.items()}
    out = model(**batch)
    out.loss.backward(); opt.step(); opt.zero_grad(); print(out.loss.item())

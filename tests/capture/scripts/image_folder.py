"""Images from a folder that the script makes, torchvision's transforms v2, CutMix in the collate function, a weighted sampler, workers, torchmetrics, a torchvision network with a new head."""
import tempfile
from pathlib import Path
import numpy as np
import torch
from PIL import Image
from torch import nn
from torch.utils.data import DataLoader, WeightedRandomSampler, default_collate
from torchmetrics.classification import MulticlassAccuracy
from torchvision import datasets, models
from torchvision.transforms import v2

def make_images(root):
    rng = np.random.default_rng(0)
    for label in ("cat", "dog", "owl"):
        (root / label).mkdir(parents=True, exist_ok=True)
        for i in range(32):
            Image.fromarray(rng.integers(0, 255, (80, 100, 3), dtype=np.uint8)).save(root / label / f"{i}.png")

def main():
    root = Path(tempfile.mkdtemp())
    make_images(root)
    train_tf = v2.Compose([v2.RandomResizedCrop(64, antialias=True), v2.RandomHorizontalFlip(), v2.TrivialAugmentWide(), v2.PILToTensor(), v2.ToDtype(torch.float32, scale=True),
                           v2.Normalize([.485, .456, .406], [.229, .224, .225]), v2.RandomErasing(p=.25)])
    data = datasets.ImageFolder(root, train_tf)
    classes = len(data.classes)
    mix = v2.RandomChoice([v2.CutMix(num_classes=classes), v2.MixUp(num_classes=classes)])
    counts = np.bincount(data.targets)
    sampler = WeightedRandomSampler([1 / counts[t] for t in data.targets], len(data))
    loader = DataLoader(data, 32, sampler=sampler, num_workers=2, collate_fn=lambda b: mix(*default_collate(b)), pin_memory=True, prefetch_factor=2)
    model = models.mobilenet_v3_small(weights=None)
    model.classifier[3] = nn.Linear(model.classifier[3].in_features, classes)
    model = model.to(memory_format=torch.channels_last).cuda()
    head = [p for n, p in model.named_parameters() if n.startswith("classifier.3")]
    rest = [p for n, p in model.named_parameters() if not n.startswith("classifier.3")]
    optimizer = torch.optim.RAdam([{"params": head, "lr": 1e-2}, {"params": rest, "lr": 1e-3}], decoupled_weight_decay=True)
    metric = MulticlassAccuracy(classes).to("cuda")
    for epoch in range(3):
        metric.reset()
        for x, y in loader:
            x, y = x.to("cuda", memory_format=torch.channels_last, non_blocking=True), y.to("cuda", non_blocking=True)
            logits = model(x)
            loss = nn.functional.cross_entropy(logits, y, label_smoothing=.1)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            metric.update(logits.argmax(1), y.argmax(1))
        print(f"{epoch}: loss {loss:.3f} acc {metric.compute().item():.3f}")

if __name__ == "__main__":
    main()

import torch, torchvision
from torchvision.transforms import v2
from torch.utils.data import DataLoader, Dataset, WeightedRandomSampler, default_collate

class Pictures(Dataset):
    def __init__(self):
        self.change = v2.Compose([v2.ToImage(), v2.RandomResizedCrop(160, antialias=True), v2.RandomHorizontalFlip(), v2.ToDtype(torch.float32, scale=True), v2.Normalize([0.5] * 3, [0.2] * 3)])
    def __len__(self): return 256
    def __getitem__(self, i):
        return self.change(torch.randint(0, 255, (3, 192, 192), dtype=torch.uint8)), i % 10

if __name__ == "__main__":
    device = torch.device("cuda") if torch.cuda.is_available() else torch.device("cpu")
    torch.backends.cudnn.benchmark = True
    mix = v2.RandomChoice([v2.MixUp(num_classes=10), v2.CutMix(num_classes=10)])
    loader = DataLoader(Pictures(), batch_size=32, sampler=WeightedRandomSampler(torch.rand(256), 256), num_workers=2, persistent_workers=True, pin_memory=True, drop_last=True, collate_fn=lambda b: mix(*default_collate(b)), prefetch_factor=2)
    model = torchvision.models.efficientnet_b0(num_classes=10).to(device, memory_format=torch.channels_last)
    optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9, nesterov=True, weight_decay=2e-5)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 0.1, total_steps=16)
    right = torch.zeros((), device=device)
    for epoch in range(2):
        model.train()
        for x, y in loader:
            x, y = x.to(device, non_blocking=True, memory_format=torch.channels_last), y.to(device, non_blocking=True)
            with torch.autocast(device.type, dtype=torch.bfloat16):
                out = model(x)
                loss = torch.nn.functional.cross_entropy(out, y)
            optimizer.zero_grad(set_to_none=True)
            loss.backward(); optimizer.step(); schedule.step()
            right += (out.argmax(1) == y.argmax(1)).sum()
            print(loss.item(), right.item() / 32)

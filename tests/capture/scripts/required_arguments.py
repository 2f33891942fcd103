# arguments: --data-root . --arch resnet18 --epochs 1 --amp
"""ImageNet's example as people copy it: required arguments, environment variables set before the import, an evaluation between epochs."""
import os
os.environ["CUDA_VISIBLE_DEVICES"] = "0"
os.environ.setdefault("PYTORCH_CUDA_ALLOC_CONF", "expandable_segments:True")
import argparse, shutil, sys, time, warnings
from enum import Enum
import torch, torch.nn as nn
import torch.backends.cudnn as cudnn
import torchvision.models as models, torchvision.transforms as transforms, torchvision.datasets as datasets

names = sorted(n for n in models.__dict__ if n.islower() and not n.startswith("__") and callable(models.__dict__[n]))
parser = argparse.ArgumentParser()
parser.add_argument("--data-root", required=True, metavar="DIR")
parser.add_argument("-a", "--arch", choices=names, required=True)
parser.add_argument("--epochs", type=int, required=True)
parser.add_argument("-b", "--batch-size", default=32, type=int)
parser.add_argument("--amp", action="store_true")
parser.add_argument("--gpu", default=0, type=int)

class Summary(Enum):
    NONE, AVERAGE = 0, 1

class AverageMeter:
    def __init__(self, name, fmt=":f"):
        self.name, self.fmt, self.sum, self.count = name, fmt, 0.0, 0
    def update(self, val, n=1):
        self.val = val; self.sum += val * n; self.count += n; self.avg = self.sum / self.count
    def __str__(self):
        return ("{name} {val" + self.fmt + "} ({avg" + self.fmt + "})").format(**self.__dict__)

def accuracy(output, target, topk=(1,)):
    with torch.no_grad():
        _, pred = output.topk(max(topk), 1, True, True)
        correct = pred.t().eq(target.view(1, -1).expand_as(pred.t()))
        return [correct[:k].reshape(-1).float().sum(0, keepdim=True).mul_(100.0 / target.size(0)) for k in topk]

def validate(loader, model, criterion, args):
    model.eval(); top1 = AverageMeter("Acc@1", ":6.2f")
    with torch.no_grad():
        for images, target in loader:
            output = model(images.cuda(args.gpu, non_blocking=True)); target = target.cuda(args.gpu, non_blocking=True)
            criterion(output, target); (acc,) = accuracy(output, target); top1.update(acc[0].item(), images.size(0))
    return top1.avg

def main():
    args = parser.parse_args()
    if not torch.cuda.is_available():
        sys.exit("a GPU is needed")
    if torch.cuda.device_count() > 1: warnings.warn("only one GPU is used")
    torch.cuda.set_device(args.gpu); cudnn.benchmark = True
    model = models.__dict__[args.arch](weights=None).cuda(args.gpu)
    criterion = nn.CrossEntropyLoss().cuda(args.gpu)
    optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9, weight_decay=1e-4, nesterov=True)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=30)
    scaler = torch.amp.GradScaler("cuda", enabled=args.amp)
    fake = lambda n: datasets.FakeData(n, (3, 224, 224), 1000, transforms.Compose([transforms.RandomHorizontalFlip(), transforms.ToTensor(), transforms.Normalize([0.485] * 3, [0.229] * 3)]))
    train_loader = torch.utils.data.DataLoader(fake(96), args.batch_size, shuffle=True, pin_memory=True)
    val_loader = torch.utils.data.DataLoader(fake(64), 2 * args.batch_size, pin_memory=True)
    validate(val_loader, model, criterion, args)
    losses, top5 = AverageMeter("Loss", ":.4e"), AverageMeter("Acc@5", ":6.2f")
    for epoch in range(args.epochs):
        model.train(); end = time.time()
        for i, (images, target) in enumerate(train_loader):
            images, target = images.cuda(args.gpu, non_blocking=True), target.cuda(args.gpu, non_blocking=True)
            with torch.autocast("cuda", torch.float16, enabled=args.amp):
                output = model(images); loss = criterion(output, target)
            acc1, acc5 = accuracy(output, target, topk=(1, 5))
            losses.update(loss.item(), images.size(0)); top5.update(acc5[0].item(), images.size(0))
            optimizer.zero_grad(); scaler.scale(loss).backward(); scaler.step(optimizer); scaler.update()
            print(f"Epoch [{epoch}][{i}]", losses, top5, f"{time.time() - end:.2f}", torch.cuda.max_memory_allocated() >> 20)
        scheduler.step()
        torch.save({"state_dict": model.state_dict(), "best": validate(val_loader, model, criterion, args)}, "checkpoint.pth.tar")

if __name__ == "__main__":
    main()

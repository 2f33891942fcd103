"""Distillation with command-line arguments, a learning-rate schedule, a log file and checkpoints on disk."""
import argparse
import csv
import json
import os

import torch
import torch.nn.functional as F
import torchvision

parser = argparse.ArgumentParser()
parser.add_argument("--batch-size", type=int, default=8)
parser.add_argument("--temperature", type=float, default=4.0)
parser.add_argument("--out", default="runs/distil")
args = parser.parse_args()
os.makedirs(args.out, exist_ok=True)
json.dump(vars(args), open(os.path.join(args.out, "args.json"), "w"))

torch.manual_seed(0)
torch.backends.cudnn.benchmark = True
device = f"cuda:{torch.cuda.current_device()}"
teacher = torchvision.models.resnet34(num_classes=100).to(device).eval().requires_grad_(False)
student = torchvision.models.mobilenet_v3_small(num_classes=100).to(device)
optimizer = torch.optim.RMSprop(student.parameters(), lr=1e-3, momentum=0.9)
schedule = torch.optim.lr_scheduler.SequentialLR(optimizer, [torch.optim.lr_scheduler.LinearLR(optimizer, 0.1, total_iters=2),
                                                             torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 10)], milestones=[2])
with open(os.path.join(args.out, "log.csv"), "w", newline="") as file:
    log = csv.writer(file)
    for step in range(6):
        x = torch.randn(args.batch_size, 3, 128, 128).to(device)
        y = torch.randint(100, (args.batch_size,)).to(device)
        with torch.inference_mode():
            soft = teacher(x)
        hard = student(x)
        loss = F.kl_div(F.log_softmax(hard / args.temperature, 1), F.softmax(soft.clone() / args.temperature, 1), reduction="batchmean") * args.temperature**2 + F.cross_entropy(hard, y)
        optimizer.zero_grad(set_to_none=False)
        loss.backward()
        if not torch.isfinite(loss):
            raise SystemExit("the loss is not finite")
        optimizer.step()
        schedule.step()
        log.writerow([step, f"{loss.item():.4f}", schedule.get_last_lr()[0], torch.cuda.max_memory_allocated() / 2**20])
        torch.save({"model": student.state_dict(), "optimizer": optimizer.state_dict()}, os.path.join(args.out, "last.pt"))

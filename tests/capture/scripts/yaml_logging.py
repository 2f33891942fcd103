"""A project's main: argparse over a YAML file, logging to file and console, TensorBoard, wandb switched off, tqdm, seeds, resume and best checkpoints, early stopping, signal handlers."""
# arguments: --config config.yaml --set batch_size=24 --name trial
import argparse, json, logging, os, random, signal, sys, time
from datetime import datetime
from pathlib import Path
import numpy as np
import torch
import torch.nn as nn
import yaml
from torch.utils.data import DataLoader, Dataset, random_split
from torch.utils.tensorboard import SummaryWriter
from tqdm.auto import tqdm
import wandb

def set_seed(seed):
    random.seed(seed); np.random.seed(seed); torch.manual_seed(seed); torch.cuda.manual_seed(seed); torch.cuda.manual_seed_all(seed)
    torch.backends.cudnn.deterministic, torch.backends.cudnn.benchmark = True, False
    os.environ["PYTHONHASHSEED"] = str(seed)

class AverageMeter:
    def __init__(self): self.sum, self.count = 0., 0
    def update(self, v, n=1): self.sum += v * n; self.count += n
    @property
    def avg(self): return self.sum / max(1, self.count)

class Windows(Dataset):
    def __init__(self, path, window):
        self.values, self.window = np.load(path), window
        self.mean, self.std = self.values.mean(0), self.values.std(0)
    def __len__(self): return len(self.values) - self.window - 24
    def __getitem__(self, i):
        x = (self.values[i:i + self.window + 24] - self.mean) / self.std
        return torch.as_tensor(x[:self.window], dtype=torch.float32), torch.as_tensor(x[self.window:], dtype=torch.float32)

class Forecaster(nn.Module):
    def __init__(self, channels, hidden, layers, dropout):
        super().__init__()
        self.rnn = nn.GRU(channels, hidden, layers, batch_first=True, dropout=dropout)
        self.attn = nn.MultiheadAttention(hidden, 4, batch_first=True)
        self.head = nn.Sequential(nn.LayerNorm(hidden), nn.Linear(hidden, 24 * channels))
        self.channels = channels
    def forward(self, x):
        h, _ = self.rnn(x)
        a, w = self.attn(h, h, h)
        return self.head((h + a)[:, -1]).view(-1, 24, self.channels)

def get_logger(folder):
    logger = logging.getLogger("train")
    logger.setLevel(logging.INFO)
    for handler in (logging.StreamHandler(sys.stdout), logging.FileHandler(folder / "train.log")):
        handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
        logger.addHandler(handler)
    return logger

def main():
    parser = argparse.ArgumentParser(formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    parser.add_argument("--config", required=True, type=Path)
    parser.add_argument("--set", nargs="*", default=[])
    parser.add_argument("--name", default=datetime.now().strftime("%m%d_%H%M%S"))
    parser.add_argument("--resume", type=Path)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    args = parser.parse_args()
    if not args.config.exists():
        args.config.write_text(yaml.safe_dump({"batch_size": 16, "window": 192, "model": {"hidden": 256, "layers": 2, "dropout": 0.1}, "optimizer": {"name": "AdamW", "lr": 1e-3}, "epochs": 3, "seed": 1}))
    cfg = yaml.safe_load(args.config.read_text())
    for item in args.set:
        key, value = item.split("=")
        cfg[key] = yaml.safe_load(value)
    set_seed(cfg["seed"])
    folder = Path("runs") / args.name
    (folder / "checkpoints").mkdir(parents=True, exist_ok=True)
    json.dump(cfg, open(folder / "config.json", "w"), indent=2)
    logger, writer = get_logger(folder), SummaryWriter(folder)
    wandb.init(project="forecast", mode="disabled", config=cfg)
    signal.signal(signal.SIGTERM, lambda *a: sys.exit(1))
    np.save(folder / "data.npy", np.random.randn(600, 7).cumsum(0).astype("float32"))
    data = Windows(folder / "data.npy", cfg["window"])
    train, val = random_split(data, [0.8, 0.2])
    loader = DataLoader(train, cfg["batch_size"], shuffle=True, num_workers=2, pin_memory=True, drop_last=True, persistent_workers=True)
    val_loader = DataLoader(val, cfg["batch_size"], num_workers=2)
    device = torch.device(args.device)
    model = Forecaster(7, **cfg["model"]).to(device)
    logger.info("%s parameters on %s", f"{sum(p.numel() for p in model.parameters()):,}", torch.cuda.get_device_name(device))
    optimizer = getattr(torch.optim, cfg["optimizer"].pop("name"))(model.parameters(), **cfg["optimizer"])
    scheduler = torch.optim.lr_scheduler.SequentialLR(optimizer, [torch.optim.lr_scheduler.LinearLR(optimizer, 0.1, total_iters=5), torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 50)], [5])
    best, patience = float("inf"), 0
    for epoch in range(cfg["epochs"]):
        meter, start = AverageMeter(), time.time()
        model.train()
        bar = tqdm(loader, desc=f"epoch {epoch}", leave=False)
        for i, (x, y) in enumerate(bar):
            x, y = x.to(device, non_blocking=True), y.to(device, non_blocking=True)
            loss = nn.functional.huber_loss(model(x), y)
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            norm = nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step(); scheduler.step()
            meter.update(loss.item(), len(x))
            bar.set_postfix(loss=f"{meter.avg:.4f}", lr=scheduler.get_last_lr()[0])
            writer.add_scalar("train/loss", loss.item(), epoch * len(loader) + i)
            writer.add_scalar("train/norm", norm, epoch * len(loader) + i)
            if i == 0:
                writer.add_histogram("head", model.head[1].weight, epoch)
            wandb.log({"loss": loss.item(), "gpu_mem": torch.cuda.max_memory_allocated() / 1e9})
        model.eval()
        with torch.no_grad():
            score = np.mean([nn.functional.l1_loss(model(x.to(device)), y.to(device)).item() for x, y in val_loader])
        logger.info("epoch %d train %.4f val %.4f %.1f s", epoch, meter.avg, score, time.time() - start)
        if score < best:
            best, patience = score, 0
            torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "epoch": epoch, "best": best}, folder / "checkpoints" / "best.pt")
        else:
            patience += 1
            if patience > 2: break
    writer.close(); wandb.finish()

if __name__ == "__main__":
    main()

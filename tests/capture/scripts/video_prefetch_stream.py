"""3-D convolutions on clips, prefetched on a stream of their own, timed by events, compiled, resumed from a checkpoint in memory."""
import io
import time

import torch
import torch.nn as nn
import torchvision


class Prefetcher:
    def __init__(self, loader):
        self.loader, self.stream = iter(loader), torch.cuda.Stream()
        self.load()

    def load(self):
        try:
            x, y = next(self.loader)
        except StopIteration:
            self.next = None
            return
        with torch.cuda.stream(self.stream):
            x, y = x.to("cuda", non_blocking=True), y.to("cuda", non_blocking=True)
            self.next = x.float().div_(255).sub_(0.45).div_(0.225), y

    def __iter__(self):
        while self.next is not None:
            torch.cuda.current_stream().wait_stream(self.stream)
            x, y = self.next
            x.record_stream(torch.cuda.current_stream())
            self.load()
            yield x, y


class Clips(torch.utils.data.Dataset):
    def __len__(self):
        return 16

    def __getitem__(self, i):
        return torch.randint(0, 256, (3, 8, 64, 64), dtype=torch.uint8), i % 10


model = torchvision.models.video.r3d_18(num_classes=10).to("cuda")
model = nn.SyncBatchNorm.convert_sync_batchnorm(model) if torch.distributed.is_initialized() else model
saved = io.BytesIO()
torch.save(model.state_dict(), saved)
saved.seek(0)
model.load_state_dict(torch.load(saved, map_location="cuda", weights_only=True))
decay = [p for p in model.parameters() if p.ndim > 1]
plain = [p for p in model.parameters() if p.ndim <= 1]
optimizer = torch.optim.NAdam([{"params": decay, "weight_decay": 0.05}, {"params": plain, "weight_decay": 0}], lr=1e-3)
compiled = torch.compile(model, mode="max-autotune")
start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
for epoch in range(2):
    for x, y in Prefetcher(torch.utils.data.DataLoader(Clips(), 4, shuffle=True, pin_memory=True, num_workers=2, drop_last=True)):
        start.record()
        before = time.perf_counter()
        with torch.autocast(device_type="cuda", dtype=torch.bfloat16):
            loss = nn.functional.cross_entropy(compiled(x), y, label_smoothing=0.1)
        optimizer.zero_grad()
        loss.backward()
        norm = torch.nn.utils.get_total_norm([p.grad for p in model.parameters()])
        optimizer.step()
        end.record()
        torch.cuda.synchronize()
        print(f"{loss.item():.3f} {norm.item():.2f} {start.elapsed_time(end):.1f} ms of {1000 * (time.perf_counter() - before):.1f}, {torch.cuda.memory_reserved() >> 20} MiB, {torch.cuda.mem_get_info()}")

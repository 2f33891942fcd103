# world: 2
"""DDP by mp.spawn, as the tutorial has it, with a sampler, SyncBatchNorm, no_sync accumulation and a reduced metric."""
import os
import torch, torch.distributed as dist, torch.multiprocessing as mp, torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler
import torchvision

def worker(rank, world, epochs):
    os.environ["MASTER_ADDR"], os.environ["MASTER_PORT"] = "localhost", "12355"
    dist.init_process_group("nccl", rank=rank, world_size=world)
    torch.cuda.set_device(rank)
    model = torchvision.models.resnet18(num_classes=10)
    model = DDP(nn.SyncBatchNorm.convert_sync_batchnorm(model).to(rank), device_ids=[rank], find_unused_parameters=False, gradient_as_bucket_view=True)
    data = TensorDataset(torch.rand(128, 3, 64, 64), torch.randint(0, 10, (128,)))
    sampler = DistributedSampler(data, num_replicas=world, rank=rank, shuffle=True)
    loader = DataLoader(data, batch_size=16, sampler=sampler, num_workers=0)
    optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9)
    for epoch in range(epochs):
        sampler.set_epoch(epoch)
        for i, (x, y) in enumerate(loader):
            x, y = x.to(rank), y.to(rank)
            if i % 2 == 0:
                with model.no_sync():
                    nn.functional.cross_entropy(model(x), y).backward()
                continue
            loss = nn.functional.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step(); optimizer.zero_grad()
            total = loss.detach().clone()
            dist.all_reduce(total, op=dist.ReduceOp.SUM)
            seen = [None] * world
            dist.all_gather_object(seen, {"rank": rank, "loss": total.item()})
            if rank == 0: print(epoch, i, total.item() / world)
        dist.barrier()
    dist.destroy_process_group()

if __name__ == "__main__":
    world = torch.cuda.device_count()
    mp.spawn(worker, args=(world, 2), nprocs=world, join=True)

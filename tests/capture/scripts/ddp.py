# world: 4
import os, torch, torch.distributed as dist, torch.nn as nn, torchvision
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data.distributed import DistributedSampler

dist.init_process_group("nccl")
rank, local = dist.get_rank(), int(os.environ["LOCAL_RANK"])
torch.cuda.set_device(local)
model = nn.SyncBatchNorm.convert_sync_batchnorm(torchvision.models.resnet18()).cuda(local)
model = DDP(model, device_ids=[local], gradient_as_bucket_view=True)
data = torch.utils.data.TensorDataset(torch.randn(128, 3, 128, 128), torch.randint(0, 1000, (128,)))
sampler = DistributedSampler(data)
loader = torch.utils.data.DataLoader(data, 8, sampler=sampler)
optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9)
for epoch in range(2):
    sampler.set_epoch(epoch)
    for x, y in loader:
        loss = nn.functional.cross_entropy(model(x.cuda(local, non_blocking=True)), y.cuda(local, non_blocking=True))
        optimizer.zero_grad(); loss.backward(); optimizer.step()
        total = loss.detach().clone()
        dist.all_reduce(total)
        if rank == 0:
            print(total.item() / dist.get_world_size())
dist.destroy_process_group()

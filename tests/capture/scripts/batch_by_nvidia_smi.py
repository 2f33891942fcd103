"""A script that asks nvidia-smi and NVML how much memory is free, computes its batch from it with a guess of bytes per sample, and prints the summary of the allocator."""
import subprocess
import torch
from torch import nn

def free_mib():
    try:
        import pynvml
        pynvml.nvmlInit()
        return pynvml.nvmlDeviceGetMemoryInfo(pynvml.nvmlDeviceGetHandleByIndex(0)).free // 2**20
    except Exception as e:
        print("no NVML:", e)
    try:
        out = subprocess.check_output(["nvidia-smi", "--query-gpu=memory.free", "--format=csv,nounits,noheader"], encoding="utf-8")
        return int(out.strip().split("\n")[0])
    except (OSError, subprocess.CalledProcessError) as e:
        print("no nvidia-smi:", e)
    free, total = torch.cuda.mem_get_info()
    return free // 2**20

total = torch.cuda.get_device_properties(0).total_memory
print(torch.cuda.get_device_properties(0), torch.cuda.utilization() if False else "")
batch = min(512, int(free_mib() * 0.9 / 160))
print("batch", batch, "of", total // 2**30, "GiB")
net = nn.Sequential(nn.Linear(4096, 2048), nn.ReLU(), nn.Linear(2048, 2048), nn.ReLU(), nn.Linear(2048, 4096)).cuda()
opt = torch.optim.SGD(net.parameters(), 0.01, momentum=0.9)
for i in range(4):
    x = torch.randn(batch, 4096, device="cuda")
    opt.zero_grad(); (net(x) - x).pow(2).mean().backward(); opt.step()
    print(torch.cuda.memory_summary(abbreviated=True)[:80], torch.cuda.memory_stats()["allocated_bytes.all.peak"])

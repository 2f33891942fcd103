"""A script that plans by what the GPU says of itself, and logs all of its memory figures."""
import gc
import torch
import torch.nn as nn

assert torch.cuda.is_available(), "no CUDA device"
torch.cuda.init()
device = torch.device(f"cuda:{torch.cuda.current_device()}")
props = torch.cuda.get_device_properties(device)
print(torch.cuda.get_device_name(0), f"{props.total_memory / 1024**3:.1f} GB, {props.multi_processor_count} SMs, sm_{props.major}{props.minor}", props)
print("capability", torch.cuda.get_device_capability(device), "bf16", torch.cuda.is_bf16_supported(), torch.version.cuda, torch.backends.cudnn.version(), torch.cuda.get_arch_list())
free, total = torch.cuda.mem_get_info()
free0, total0 = torch.cuda.mem_get_info(device)
batch = 64 if free0 > 40 * 1024**3 else 32 if free > 12 * 1024**3 else 8
torch.cuda.set_per_process_memory_fraction(0.95, device)
dtype = torch.bfloat16 if torch.cuda.get_device_capability()[0] >= 8 else torch.float16


def report(tag):
    torch.cuda.synchronize()
    stats = torch.cuda.memory_stats(device)
    print(f"[{tag}] allocated {torch.cuda.memory_allocated() / 2**20:.1f} reserved {torch.cuda.memory_reserved(device) / 2**20:.1f} "
          f"peak {torch.cuda.max_memory_allocated() / 2**20:.1f}/{torch.cuda.max_memory_reserved() / 2**20:.1f} retries {stats['num_alloc_retries']} ooms {stats.get('num_ooms', 0)} "
          f"active {stats['active_bytes.all.current']} inactive {stats['inactive_split_bytes.all.peak']} blocks {stats['allocation.all.current']} segments {stats['segment.all.allocated']}")
    print(torch.cuda.memory_summary(device=device, abbreviated=True)[:400])
    print(torch.cuda.utilization() if False else "", torch.cuda.memory_usage() if False else "")


net = nn.Sequential(nn.Linear(1024, 4096), nn.GELU(), nn.Dropout(0.1), nn.Linear(4096, 4096), nn.GELU(), nn.Linear(4096, 1024)).to(device)
report("model")
optimizer = torch.optim.AdamW(net.parameters(), fused=True)
start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
side = torch.cuda.Stream()
torch.cuda.reset_peak_memory_stats(device)
torch.cuda.memory._record_memory_history(max_entries=1000)
for step in range(4):
    start.record()
    torch.cuda.nvtx.range_push("step")
    with torch.cuda.stream(side):
        x = torch.randn(batch, 256, 1024).pin_memory().to(device, non_blocking=True)
    torch.cuda.current_stream().wait_stream(side)
    x.record_stream(torch.cuda.current_stream())
    with torch.autocast("cuda", dtype):
        loss = net(x).float().pow(2).mean()
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    optimizer.step()
    torch.cuda.nvtx.range_pop()
    end.record()
    torch.cuda.synchronize()
    report(f"step {step}, {start.elapsed_time(end):.1f} ms, {torch.cuda.get_rng_state().shape} {torch.cuda.device_count()} GPUs")
    if torch.cuda.memory_allocated() / total > 0.9:
        gc.collect()
        torch.cuda.empty_cache()
print(len(torch.cuda.memory_snapshot()))

import torch, torchvision

model = torchvision.models.convnext_tiny().to("cuda", memory_format=torch.channels_last)
opt = torch.optim.AdamW(model.parameters(), 1e-3, foreach=False)
stream = torch.cuda.Stream()
for i in range(3):
    with torch.cuda.stream(stream):
        x = torch.randn(8, 3, 224, 224).to("cuda", memory_format=torch.channels_last, non_blocking=True)
        y = torch.randint(1000, (8,)).to("cuda", non_blocking=True)
    torch.cuda.current_stream().wait_stream(stream)
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    start.record()
    with torch.autocast(device_type="cuda", dtype=torch.bfloat16):
        loss = torch.nn.functional.cross_entropy(model(x), y)
    loss.backward(); opt.step(); opt.zero_grad()
    end.record(); torch.cuda.synchronize()
    print(start.elapsed_time(end), loss.item(), torch.cuda.memory_summary(abbreviated=True)[:0])

"""accelerate's find_executable_batch_size, and a loop that catches the out-of-memory error by itself."""
import torch, torch.nn as nn
from accelerate import Accelerator
from accelerate.utils import find_executable_batch_size, set_seed

class Net(nn.Module):
    def __init__(self, width=2048):
        super().__init__()
        self.embed = nn.Embedding(5000, width)
        self.blocks = nn.ModuleList(nn.Sequential(nn.LayerNorm(width), nn.Linear(width, width), nn.ReLU(inplace=True), nn.Linear(width, width)) for _ in range(3))
        self.out = nn.Linear(width, 5000)
    def forward(self, ids):
        x = self.embed(ids)
        for b in self.blocks: x = x + b(x)
        return self.out(x)

def probe(model, sizes=(64, 32, 16)):
    for size in sizes:
        try:
            model(torch.zeros(size, 64, dtype=torch.long, device="cuda")).sum().backward()
            return size
        except torch.cuda.OutOfMemoryError:
            print(size, "is too much"); torch.cuda.empty_cache()
        except RuntimeError as e:
            if "out of memory" not in str(e): raise
        finally:
            model.zero_grad(set_to_none=True)
    raise RuntimeError("nothing fits")

def training_function():
    set_seed(1)
    accelerator = Accelerator(mixed_precision="fp16", gradient_accumulation_steps=2)
    model = Net()
    @find_executable_batch_size(starting_batch_size=32)
    def inner(batch_size):
        nonlocal model
        accelerator.free_memory()
        data = torch.utils.data.TensorDataset(torch.randint(0, 5000, (512, 64)))
        loader = torch.utils.data.DataLoader(data, batch_size=batch_size, shuffle=True, drop_last=True)
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
        model, opt, loader = accelerator.prepare(model, optimizer, loader)
        print("probed", probe(model))
        for (ids,) in loader:
            with accelerator.accumulate(model):
                logits = model(ids[:, :-1])
                loss = nn.functional.cross_entropy(logits.transpose(1, 2), ids[:, 1:])
                accelerator.backward(loss)
                if accelerator.sync_gradients: accelerator.clip_grad_value_(model.parameters(), 1.0)
                opt.step(); opt.zero_grad()
            accelerator.print(accelerator.gather(loss.detach()).mean().item())
    inner()

training_function()

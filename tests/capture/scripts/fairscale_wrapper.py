"""A checkpoint wrapper of one's own in fairscale's manner (patched forward, autograd.Function, RNG and autocast kept, offload to host), and reversible blocks."""
import functools
import torch
from torch import nn

class Checkpointed(torch.autograd.Function):
    @staticmethod
    def forward(ctx, dummy, run, offload, *tensors):
        ctx.run, ctx.offload = run, offload
        ctx.cpu_rng, ctx.gpu_rng = torch.get_rng_state(), torch.cuda.get_rng_state()
        ctx.enabled, ctx.dtype = torch.is_autocast_enabled(), torch.get_autocast_gpu_dtype()
        ctx.devices = [t.device for t in tensors]
        kept = [t.to("cpu", non_blocking=True) for t in tensors] if offload else list(tensors)
        ctx.save_for_backward(*kept)
        ctx.needs = [t.requires_grad for t in tensors]
        with torch.no_grad():
            return run(*tensors)
    @staticmethod
    def backward(ctx, *grads):
        if not torch.autograd._is_checkpoint_valid():
            raise RuntimeError("Checkpointing is not compatible with .grad(), please use .backward() if possible")
        tensors = [t.to(d, non_blocking=True).detach().requires_grad_(n) for t, d, n in zip(ctx.saved_tensors, ctx.devices, ctx.needs)]
        before = torch.get_rng_state(), torch.cuda.get_rng_state()
        torch.set_rng_state(ctx.cpu_rng)
        torch.cuda.set_rng_state(ctx.gpu_rng)
        with torch.enable_grad(), torch.autocast("cuda", enabled=ctx.enabled, dtype=ctx.dtype):
            out = ctx.run(*tensors)
        torch.set_rng_state(before[0])
        torch.cuda.set_rng_state(before[1])
        torch.autograd.backward([out], grads)
        return (None, None, None, *(t.grad for t in tensors))

def checkpoint_wrapper(module, offload_to_cpu=False):
    original = module.forward
    @functools.wraps(original)
    def forward(*args):
        if not torch.is_grad_enabled():
            return original(*args)
        dummy = torch.tensor([], requires_grad=True)
        return Checkpointed.apply(dummy, original, offload_to_cpu, *args)
    module.forward = forward
    return module

class Block(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.norm, self.qkv, self.proj = nn.LayerNorm(dim), nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)
        self.norm2, self.mlp, self.drop = nn.LayerNorm(dim), nn.Sequential(nn.Linear(dim, 4 * dim), nn.GELU(), nn.Linear(4 * dim, dim)), nn.Dropout(0.1)
    def forward(self, x):
        b, t, d = x.shape
        q, k, v = self.qkv(self.norm(x)).view(b, t, 3, 8, d // 8).permute(2, 0, 3, 1, 4)
        scores = (q @ k.transpose(-2, -1)) * (d // 8) ** -0.5
        x = x + self.drop(self.proj((scores.softmax(-1) @ v).transpose(1, 2).reshape(b, t, d)))
        return x + self.drop(self.mlp(self.norm2(x)))

class Reversible(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x1, x2, f, g):
        ctx.f, ctx.g = f, g
        with torch.no_grad():
            y1 = x1 + f(x2)
            y2 = x2 + g(y1)
        ctx.save_for_backward(y1.detach(), y2.detach())
        return y1, y2
    @staticmethod
    def backward(ctx, dy1, dy2):
        y1, y2 = ctx.saved_tensors
        with torch.enable_grad():
            y1 = y1.detach().requires_grad_()
            gy1 = ctx.g(y1)
            gy1.backward(dy2)
        with torch.no_grad():
            x2 = y2 - gy1
            dx1 = dy1 + y1.grad
        with torch.enable_grad():
            x2 = x2.detach().requires_grad_()
            f2 = ctx.f(x2)
            f2.backward(dx1)
        return dx1, dy2 + x2.grad, None, None

class Net(nn.Module):
    def __init__(self, dim=256, depth=4):
        super().__init__()
        self.inp = nn.Linear(32, dim)
        self.blocks = nn.ModuleList(checkpoint_wrapper(Block(dim), offload_to_cpu=i % 2 == 0) for i in range(depth))
        half = dim // 2
        self.f = nn.ModuleList(nn.Sequential(nn.LayerNorm(half), nn.Linear(half, 2 * half), nn.SiLU(), nn.Linear(2 * half, half)) for _ in range(3))
        self.g = nn.ModuleList(nn.Sequential(nn.LayerNorm(half), nn.Linear(half, half)) for _ in range(3))
        self.out = nn.Linear(dim, 32)
    def forward(self, x):
        x = self.inp(x)
        for b in self.blocks:
            x = b(x)
        a, c = x.chunk(2, -1)
        for f, g in zip(self.f, self.g):
            a, c = Reversible.apply(a, c, f, g)
        return self.out(torch.cat([a, c], -1))

def main():
    torch.manual_seed(0)
    torch.cuda.manual_seed_all(0)
    torch.backends.cuda.matmul.allow_tf32 = True
    model = Net().cuda()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, betas=(0.9, 0.98))
    for i in range(20):
        x = torch.randn(8, 256, 32).cuda(non_blocking=True)
        loss = (model(x) - x).pow(2).mean()
        optimizer.zero_grad(set_to_none=False)
        loss.backward()
        optimizer.step()
        if i % 5 == 0:
            print(f"step {i} loss {loss.item():.4f} mem {torch.cuda.memory_allocated() / 1e6:.1f}MB")

main()

"""PyTorch's own record as referee: a step that really runs on the CPU, against a recording of the same step.

    cpu_referee.py            # prints one line per step; exit code 1 if a step deviates

torch.profiler notes every allocation of the CPU allocator. Each step here uses operations whose CPU kernels allocate the
same tensors as the CUDA kernels; the sizes of all allocations of the second iteration must agree, tensor for tensor.
"""
import collections
import sys

import torch
import torch.nn as nn
import torch.nn.functional as F

import memfathom.torch as recorded


# Scratch of CPU kernels that CUDA's do not have: layer_norm_backward sums per thread.
CPU_SCRATCH = {"residual": {512: 2}, "residual, adam": {512: 1}}
# The CPU's dropout keeps its noise as floats where CUDA's keeps a mask of bytes: what the CPU has in place of what is recorded.
CPU_INSTEAD = {"dropout": ({32768: 1}, {8192: 1})}


def mlp(width=64, activation=nn.ReLU):
    return nn.Sequential(nn.Linear(32, width), activation(), nn.Linear(width, width), activation(), nn.Linear(width, 10))


class Residual(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b, self.norm = nn.Linear(32, 32), nn.Linear(32, 32), nn.LayerNorm(32)

    def forward(self, x):
        return self.b(F.gelu(self.a(self.norm(x)))) + x


class Words(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.head = nn.Embedding(100, 32), nn.Linear(32, 10)

    def forward(self, x):
        return self.head(self.embed(x).mean(1))


def vectors():
    return torch.randn(16, 32)


def words():
    return torch.randint(0, 100, (16, 12))


SGD, ADAM = (lambda p: torch.optim.SGD(p, 0.1)), (lambda p: torch.optim.Adam(p, 1e-3, foreach=False))
MOMENTUM, LOOP = (lambda p: torch.optim.SGD(p, 0.1, momentum=0.9, foreach=False)), (lambda p: torch.optim.RMSprop(p, 0.1, foreach=False))
STEPS = {
    "mlp, sgd": (mlp, vectors, SGD), "mlp, momentum": (mlp, vectors, MOMENTUM), "mlp, adam": (mlp, vectors, ADAM), "mlp, rmsprop": (mlp, vectors, LOOP),
    "wide mlp": (lambda: mlp(512), vectors, SGD), "tanh": (lambda: mlp(64, nn.Tanh), vectors, SGD), "sigmoid": (lambda: mlp(64, nn.Sigmoid), vectors, SGD),
    "gelu": (lambda: mlp(64, nn.GELU), vectors, SGD), "silu": (lambda: mlp(64, nn.SiLU), vectors, SGD), "softplus": (lambda: mlp(64, nn.Softplus), vectors, SGD),
    "leaky relu": (lambda: mlp(64, nn.LeakyReLU), vectors, SGD), "elu": (lambda: mlp(64, nn.ELU), vectors, SGD), "hardswish": (lambda: mlp(64, nn.Hardswish), vectors, SGD),
    "mish": (lambda: mlp(64, nn.Mish), vectors, SGD), "residual": (lambda: nn.Sequential(Residual(), Residual(), nn.Linear(32, 10)), vectors, SGD),
    "residual, adam": (lambda: nn.Sequential(Residual(), nn.Linear(32, 10)), vectors, ADAM), "embedding": (Words, words, SGD), "embedding, adam": (Words, words, ADAM),
    "softmax": (lambda: nn.Sequential(nn.Linear(32, 32), nn.Softmax(-1), nn.Linear(32, 10)), vectors, SGD),
    "dropout": (lambda: nn.Sequential(nn.Linear(32, 512), nn.Dropout(0.1), nn.Linear(512, 10)), vectors, SGD),
    "batch of one layer": (lambda: nn.Linear(32, 10), vectors, SGD), "deep mlp": (lambda: nn.Sequential(*[nn.Linear(32, 32) for _ in range(12)], nn.Linear(32, 10)), vectors, MOMENTUM),
}


def make_step(make, batch, optimize):
    torch.manual_seed(0)
    model = make()
    optimizer, x, y = optimize(model.parameters()), batch(), torch.randint(0, 10, (16,))

    def step():
        device = next(model.parameters()).device
        loss = F.cross_entropy(model(x.to(device)), y.to(device))
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    return step, model, optimizer


def really(step):
    """Sizes of the allocations of the second iteration on the CPU, and its peak above what was alive before."""
    step()
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], profile_memory=True) as profile:
        step()
    changes = [e.nbytes() for e in profile.profiler.kineto_results.events() if e.name() == "[memory]"]
    live = peak = 0
    for change in changes:
        live += change
        peak = max(peak, live)
    return collections.Counter(c for c in changes if c > 0), peak


def as_recorded(step, model, optimizer):
    result = recorded.capture(step, model, optimizer)
    events, inside, live, peak = result._recorder.events, False, 0, 0
    sizes, alive = collections.Counter(), {}
    for event in events:
        if event["op"] == "phase":
            inside = result._phases.iteration_of(event) == 2
        elif event["op"] == "alloc":
            if event.get("tag") != "inputs":  # the CPU copies none
                alive[event["id"]] = event["bytes"]
            if inside and event["id"] in alive:
                sizes[event["bytes"]] += 1
                live += event["bytes"]
        elif inside and event["id"] in alive:
            live -= alive[event["id"]]
        peak = max(peak, live)
    return sizes, peak


def rounded(sizes):
    """The CPU allocator reports multiples of 64 bytes for some storages and the exact size for others."""
    return collections.Counter({size: count for size, count in sizes.items() if size > 64})


def main():
    failures = 0
    for name, parts in STEPS.items():
        real, real_peak = really(make_step(*parts)[0])
        fake, fake_peak = as_recorded(*make_step(*parts))
        only_real, only_fake = rounded(real) - rounded(fake), rounded(fake) - rounded(real)
        real_instead, fake_instead = CPU_INSTEAD.get(name, (CPU_SCRATCH.get(name, {}), {}))
        agrees = only_real == real_instead and only_fake == fake_instead and abs(real_peak - fake_peak) <= 64
        failures += not agrees
        print(f"{name}: {sum(real.values())} allocations, peak {real_peak} recorded {fake_peak}{'' if agrees else f', only real {dict(only_real)}, only recorded {dict(only_fake)}'}")
    print(f"{len(STEPS) - failures} of {len(STEPS)} steps agree tensor for tensor")
    return int(failures > 0)


if __name__ == "__main__":
    sys.exit(main())

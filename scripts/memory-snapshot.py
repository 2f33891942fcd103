#!/usr/bin/env python3
"""memory-snapshot.py cuda:N FILE: PyTorch's record of every allocation of three training steps of a small network, for
pytorch.org/memory_viz and for a comparison with the replay, allocation by allocation."""
import sys

import torch


def main():
    device, file = sys.argv[1:]
    torch.cuda.memory._record_memory_history(max_entries=1000000)
    model = torch.nn.Sequential(torch.nn.Linear(1024, 4096), torch.nn.ReLU(), torch.nn.Linear(4096, 1024)).to(device)
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in range(3):
        optimizer.zero_grad(set_to_none=True)
        model(torch.zeros(256, 1024, device=device)).mean().backward()
        optimizer.step()
    torch.cuda.synchronize()
    torch.cuda.memory._dump_snapshot(file)
    print(torch.__version__, torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved())


if __name__ == "__main__":
    main()

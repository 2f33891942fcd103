"""The allocation history of a job: every allocation and free of its iterations, in the form of torch.cuda.memory._snapshot().

On a GPU PyTorch's caching allocator keeps it. On the cpu, which has no such allocator, the storages of every operation's
results are recorded as they come and go: the same sequence without what kernels allocate inside. It is taken after the
sample, from an empty cache, so that it changes no reading."""
import pickle
import sys
import weakref

from .loop import Loop

ITERATIONS = 3
FRAMES = 64  # of the Python stack of an allocation
ALIGNMENT = 512


def python_frames(skipped):
    frames, frame = [], sys._getframe(skipped + 1)
    while frame is not None and len(frames) < FRAMES:
        frames.append({"name": frame.f_code.co_name, "filename": frame.f_code.co_filename, "line": frame.f_lineno})
        frame = frame.f_back
    return frames


class StorageHistory:
    """The events of all storages that operations make while its mode is active."""

    def __init__(self, torch):
        from torch.utils._python_dispatch import TorchDispatchMode
        from torch.utils._pytree import tree_leaves
        self.torch, self.events, self.known, self.next_address = torch, [], {}, ALIGNMENT
        history = self

        class Mode(TorchDispatchMode):
            def __torch_dispatch__(self, function, types, arguments=(), keywords=None):
                result = function(*arguments, **(keywords or {}))
                for leaf in tree_leaves(result):
                    # lift_fresh makes a tensor of Python's numbers: of the host, also in a job on a GPU.
                    if isinstance(leaf, torch.Tensor) and leaf.device.type == "cpu" and function is not torch.ops.aten.lift_fresh.default:
                        history.see(leaf.untyped_storage(), function)
                return result

        self.mode = Mode()

    def see(self, storage, function):
        key, size = storage._cdata, storage.nbytes()
        if key in self.known or size == 0:
            return
        address = self.next_address
        self.next_address += (size + ALIGNMENT - 1) // ALIGNMENT * ALIGNMENT
        operation = {"name": "at::_ops::%s::call" % function.overloadpacket.__name__, "filename": "", "line": 0}
        self.note("alloc", address, size, [operation] + python_frames(2))
        self.known[key] = weakref.finalize(storage, self.end, key, address, size)

    def end(self, key, address, size):
        del self.known[key]
        self.note("free_requested", address, size, [])
        self.note("free_completed", address, size, [])

    def note(self, action, address, size, frames):
        self.events.append({"action": action, "addr": address, "size": size, "stream": 0, "frames": frames})

    def snapshot(self):
        for finalizer in list(self.known.values()):
            finalizer.detach()  # what lives when the snapshot is taken is not freed in it
        return {"segments": [], "device_traces": [self.events]}


def iterate(torch, job, device):
    loop = Loop(torch, job, device.name)
    if loop.optimizer is not None and not device.is_cuda:
        loop.optimizer.param_groups[0]["foreach"] = True  # as PyTorch chooses on a GPU
    for _ in range(ITERATIONS):
        loop.iterate()
    device.synchronize()
    return loop


def record_on_gpu(torch, job, device):
    record = torch.cuda.memory._record_memory_history
    record(enabled="all", context="all", stacks="all", max_entries=1000000)
    try:
        kept = iterate(torch, job, device)
        snapshot = torch.cuda.memory._snapshot(device.index)
        del kept
    finally:
        record(enabled=None)
    return snapshot


def record(job, device, path):
    """Writes the history of `job` to `path`, as torch.cuda.memory._dump_snapshot does."""
    device.give_back()
    if device.is_cuda:
        snapshot = record_on_gpu(device.torch, job, device)
    else:
        history = StorageHistory(device.torch)
        with history.mode:
            kept = iterate(device.torch, job, device)
        snapshot = history.snapshot()
        del kept
    with open(path, "wb") as file:
        pickle.dump(snapshot, file, protocol=4)

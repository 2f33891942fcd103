"""Process groups without processes: PyTorch's fake group, and DistributedDataParallel's buckets in Python.

Collectives of the fake group return at once; the first rank is recorded.
"""
import contextlib
import os

import torch
import torch.distributed as dist
import torch.multiprocessing

MIB = 1 << 20
FIRST_BUCKET = MIB


def environment(world):
    """What torchrun sets for the first of `world` processes."""
    return {"WORLD_SIZE": str(world), "RANK": "0", "LOCAL_RANK": "0", "LOCAL_WORLD_SIZE": str(world), "GROUP_RANK": "0", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29500"}


def pretend_world(recorder, world, patches):
    if not dist.is_available():
        return
    init = dist.init_process_group

    def init_process_group(backend=None, *args, **kwargs):
        from torch.testing._internal.distributed.fake_pg import FakeStore

        if not dist.is_initialized():
            asked = kwargs.get("world_size", -1)
            init("fake", store=FakeStore(), rank=0, world_size=asked if isinstance(asked, int) and asked > 0 else world)

    def spawn(function, args=(), nprocs=1, *others, **options):
        """The first process is this one."""
        recorder.guess(f"torch.multiprocessing.spawn: the first of {nprocs} processes is recorded")
        function(0, *args)

    for name in ("spawn", "start_processes"):
        patches.set(torch.multiprocessing, name, spawn)
    patches.set(dist, "init_process_group", init_process_group)
    for owner in (dist.distributed_c10d, dist.device_mesh):
        patches.set(owner, "init_process_group", init_process_group)
    for owner in (dist, dist.distributed_c10d, dist.utils.dist, torch.nn.parallel.distributed.dist):
        patches.set(owner, "_verify_params_across_processes", lambda *a, **k: None)
    for owner in (torch.nn.parallel, torch.nn.parallel.distributed):
        patches.set(owner, "DistributedDataParallel", replicated(recorder))
    patches.set(torch.nn, "DataParallel", data_parallel(recorder))
    _quiet_dtensor(recorder, patches)


def _quiet_dtensor(recorder, patches):
    """DTensor computes shapes of its results on tensors that are no memory of the step."""
    from torch.distributed.tensor import _sharding_prop
    from torch.distributed.tensor._sharding_prop import ShardingPropagator

    if hasattr(_sharding_prop, "detect_fake_mode"):  # it would make one of its own, and local parts have the recorder's
        patches.set(_sharding_prop, "detect_fake_mode", lambda inputs=None: recorder.fake)
    name = "_propagate_tensor_meta_non_cached"
    if not hasattr(ShardingPropagator, name):
        return
    propagate = getattr(ShardingPropagator, name)

    def unrecorded(*args, **kwargs):
        recorder.paused += 1
        try:
            return propagate(*args, **kwargs)
        finally:
            recorder.paused -= 1

    patches.set(ShardingPropagator, name, unrecorded)


def data_parallel(recorder):
    class DataParallel(torch.nn.Module):
        def __init__(self, module, device_ids=None, output_device=None, dim=0):
            super().__init__()
            self.module, self.device_ids = module, device_ids or [0]
            recorder.guess("DataParallel: recorded with one GPU")

        def forward(self, *args, **kwargs):
            return self.module(*args, **kwargs)

    return DataParallel


def _to_gpu(value):
    return value.to("cuda") if isinstance(value, torch.Tensor) else value


def replicated(recorder):
    class DistributedDataParallel(torch.nn.Module):
        """Buckets are made with the module, and made again in the order of arrival after the first backward."""

        def __init__(self, module, device_ids=None, output_device=None, dim=0, broadcast_buffers=True, process_group=None, bucket_cap_mb=None,
                     find_unused_parameters=False, check_reduction=False, gradient_as_bucket_view=False, static_graph=False, **others):
            super().__init__()
            self.module, self.device_ids, self.as_views = module, device_ids, gradient_as_bucket_view
            self.require_backward_grad_sync, self.find_unused_parameters = True, find_unused_parameters
            self.cap = int((bucket_cap_mb or 25) * MIB)
            self.trained = [p for p in module.parameters() if p.requires_grad]
            self.places, self.buckets, self.arrived, self.rebuilt = {}, [], [], False
            self.fill(self.trained[::-1])
            for p in self.trained:
                p.register_post_accumulate_grad_hook(self.ready)

        def fill(self, parameters):
            groups, sizes = [], []
            for p in parameters:
                size = p.numel() * p.element_size()
                cap = FIRST_BUCKET if len(groups) <= 1 else self.cap
                if not groups or sizes[-1] >= cap or groups[-1][0].dtype != p.dtype:
                    groups.append([])
                    sizes.append(0)
                groups[-1].append(p)
                sizes[-1] += size
            self.places.clear()
            self.buckets.clear()
            for group in groups:
                bucket, at = torch.empty(sum(p.numel() for p in group), dtype=group[0].dtype, device="cuda"), 0
                self.buckets.append(bucket)
                for p in group:
                    self.places[p] = bucket[at : at + p.numel()].view(p.shape)
                    at += p.numel()
            recorder.tag(self.buckets, "gradients" if self.as_views else "communication")

        def ready(self, p):
            if not self.rebuilt:
                self.arrived.append(p)
            if self.as_views and p in self.places:
                p.grad = self.places[p]

        def forward(self, *args, **kwargs):
            if torch.is_grad_enabled() and not self.rebuilt and self.arrived:
                self.rebuilt = True
                seen = dict.fromkeys(self.arrived)
                self.fill([*seen, *(p for p in self.trained[::-1] if p not in seen)])
                self.arrived = []
            return self.module(*map(_to_gpu, args), **{k: _to_gpu(v) for k, v in kwargs.items()})

        def no_sync(self):
            return contextlib.nullcontext()

        def join(self, *args, **kwargs):
            return contextlib.nullcontext()

        def register_comm_hook(self, state, hook):
            recorder.guess("DistributedDataParallel's communication hook is not run")

        def _set_static_graph(self):
            pass

    return DistributedDataParallel

"""What a script asks a GPU: its name, its memory, its streams. Answered from a description and from what was recorded."""
import collections
import types

import torch

from .recorder import CUDA

POOLED = ("allocation", "segment", "active", "inactive_split", "allocated_bytes", "reserved_bytes", "active_bytes", "inactive_split_bytes", "requested_bytes")
HELD = ("allocated_bytes", "reserved_bytes", "active_bytes", "requested_bytes")  # what is recorded of them; the others are 0
COUNTS = ("num_alloc_retries", "num_ooms", "num_sync_all_streams", "num_device_alloc", "num_device_free", "max_split_size")


class Idle:
    """A stream, an event or a context in which nothing happens."""

    def __init__(self, *args, **kwargs):
        self.device, self.device_index, self.cuda_stream, self.stream_id, self.device_type = CUDA, 0, 0, 0, 1

    def __enter__(self):
        return self

    def __exit__(self, *_):
        return None

    def __eq__(self, other):
        return isinstance(other, Idle)

    __hash__ = object.__hash__

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return {"query": lambda *a: True, "elapsed_time": lambda *a: 1.0, "priority": 0}.get(name, lambda *a, **k: None)


class IdleEvent(Idle):
    pass


class IdleStream(Idle):
    def record_event(self, event=None):
        return event or IdleEvent()


def nested(recorder):
    """torch.cuda.memory_stats_as_nested_dict: what is allocated counts as reserved too, and small blocks as large ones."""
    def metric(name, pool):
        current, peak = (recorder.live, recorder.watermark) if name in HELD and pool != "small_pool" else (0, 0)
        return {"current": current, "peak": peak, "allocated": peak, "freed": peak - current}

    pooled = {name: {pool: metric(name, pool) for pool in ("all", "large_pool", "small_pool")} for name in POOLED}
    return pooled | {name: metric(name, "all") for name in ("oversize_allocations", "oversize_segments")} | dict.fromkeys(COUNTS, 0)


def _flat(stats, prefix=""):
    for key, value in sorted(stats.items()):
        if isinstance(value, dict):
            yield from _flat(value, f"{prefix}{key}.")
        else:
            yield prefix + key, value


def _memory_answers(recorder, memory):
    nothing, live, peak = lambda *a, **k: None, lambda *a, **k: recorder.live, lambda *a, **k: recorder.watermark
    free = lambda *a, **k: (max(0, memory - recorder.live), memory)

    def forget_peak(*args, **kwargs):
        recorder.watermark = recorder.live

    return dict(mem_get_info=free, get_memory_info=free, memory_allocated=live, max_memory_allocated=peak, memory_reserved=live, max_memory_reserved=peak, memory_cached=live,
                max_memory_cached=peak, reset_peak_memory_stats=forget_peak, reset_max_memory_allocated=forget_peak, reset_max_memory_cached=forget_peak,
                reset_accumulated_memory_stats=nothing, empty_cache=nothing, memory_stats=lambda *a, **k: collections.OrderedDict(_flat(nested(recorder))),
                memory_snapshot=lambda *a, **k: [], _snapshot=lambda *a, **k: {"segments": [], "device_traces": []}, _record_memory_history=nothing, _dump_snapshot=nothing,
                set_per_process_memory_fraction=nothing, list_gpu_processes=lambda *a: "", memory_usage=lambda *a: 0)


def answer_questions(recorder, gpu, patches):
    name, capability, memory = gpu["name"], tuple(gpu["capability"]), gpu["memory"]
    properties = types.SimpleNamespace(name=name, major=capability[0], minor=capability[1], total_memory=memory, multi_processor_count=108, warp_size=32,
                                       max_threads_per_multi_processor=2048, is_integrated=False, is_multi_gpu_board=False, gcnArchName="", regs_per_multiprocessor=65536,
                                       shared_memory_per_block=49152, shared_memory_per_block_optin=166912, shared_memory_per_multiprocessor=167936,
                                       L2_cache_size=40 << 20, uuid="GPU-0", pci_bus_id=0, pci_device_id=0, pci_domain_id=0)
    def set_device(device):
        recorder.current_gpu = device if isinstance(device, int) else torch.device(device).index

    stream, rng = IdleStream(), torch.zeros(16, dtype=torch.uint8)
    nothing = lambda *a, **k: None
    memory_answers = _memory_answers(recorder, memory)
    random_answers = dict(manual_seed=nothing, manual_seed_all=nothing, seed=nothing, seed_all=nothing, initial_seed=lambda: 0, get_rng_state=lambda device="cuda": rng.clone(),
                          set_rng_state=nothing, get_rng_state_all=lambda: [rng.clone()], set_rng_state_all=nothing)
    generator = types.SimpleNamespace(device=CUDA, get_state=rng.clone, set_state=nothing, manual_seed=nothing, seed=lambda: 0, initial_seed=lambda: 0)
    answers = dict(default_generators=(generator,) * gpu["count"], is_available=lambda: True, device_count=lambda: gpu["count"], current_device=lambda: 0, set_device=set_device, _lazy_init=nothing, init=nothing, is_initialized=lambda: True,
                   get_device_properties=lambda device=None: properties, get_device_name=lambda device=None: name, get_device_capability=lambda device=None: capability,
                   synchronize=nothing, ipc_collect=nothing, is_bf16_supported=lambda including_emulation=True: capability >= (8, 0), Stream=IdleStream, Event=IdleEvent,
                   current_stream=lambda device=None: stream, default_stream=lambda device=None: stream, stream=lambda stream=None: Idle(), set_stream=nothing, device=Idle, device_of=Idle,
                   _exchange_device=lambda device: 0, _maybe_exchange_device=lambda device: 0, get_arch_list=lambda: ["sm_%d%d" % capability], is_current_stream_capturing=lambda: False,
                   can_device_access_peer=lambda a, b: True, utilization=lambda device=None: 0, nvtx=Idle(), _is_in_bad_fork=lambda: False, StreamContext=lambda stream=None: Idle())
    for owner, table in ((torch.cuda, answers | memory_answers | random_answers), (torch.cuda.memory, memory_answers | dict(memory_stats_as_nested_dict=lambda device=None: nested(recorder))), (torch.cuda.random, random_answers)):
        for key, value in table.items():
            if hasattr(owner, key):
                patches.set(owner, key, value)
    accelerator = dict(current_accelerator=lambda check_available=False: torch.device("cuda"), is_available=lambda: True, device_count=lambda: gpu["count"], current_device_index=lambda: 0,
                       current_device_idx=lambda: 0, synchronize=nothing, current_stream=lambda *a: stream, set_stream=nothing, set_device_index=nothing, set_device_idx=nothing)
    for key, value in (accelerator | memory_answers).items():
        if hasattr(torch.accelerator, key):
            patches.set(torch.accelerator, key, value)
    if hasattr(torch._C, "_get_accelerator"):
        patches.set(torch._C, "_get_accelerator", lambda *a: torch.device("cuda"))

"""What collectives hold outside the allocator: several processes, a communicator, a second one, DDP and FSDP.

Every rank is a fork of this process, made before torch is loaded, with a GPU of its own (NCCL) or on the cpu (Gloo). After
each stage it reads its device's memory less what the allocator reserves; the sample has the largest reading of all ranks."""
import json
import os
import socket
import sys

from .device import Device
from .meters import Stages

WIDTH, DEPTH, BATCH = 1024, 4, 8  # of the network that DDP and FSDP wrap
STAGES = ("communicator", "second_communicator", "ddp", "fsdp")


class OutsideMeter:
    """A meter less what the allocator reserves."""

    def __init__(self, device):
        self.device, self.torch = device, None

    def used(self):
        reserved = self.torch.cuda.memory_reserved(self.device.index) if self.torch and self.device.is_cuda else 0
        return self.device.meter.used() - reserved


class Rank:
    def __init__(self, spec, rank, device_name, listener):
        self.rank, self.size, self.listener, self.missing = rank, spec["ranks"], listener, {}
        self.device = Device(device_name)
        self.meter = OutsideMeter(self.device)
        self.stages = Stages(self.meter)

    def read(self, stage):
        """When all ranks have reached it: peers map each other's buffers."""
        self.device.synchronize()
        if self.torch.distributed.is_initialized():
            self.torch.distributed.all_reduce(self.token)
            self.device.synchronize()
        self.stages.read(stage)

    def network(self):
        nn = self.torch.nn
        with self.torch.device(self.device.name):
            return nn.Sequential(*(nn.Linear(WIDTH, WIDTH) for _ in range(DEPTH)))

    def step(self, network):
        network(self.torch.ones(BATCH, WIDTH, device=self.device.name)).sum().backward()

    def connect(self):
        distributed = self.torch.distributed
        if self.rank == 0:
            store = distributed.TCPStore("127.0.0.1", self.listener.getsockname()[1], self.size, True,
                                         master_listen_fd=self.listener.detach(), use_libuv=False)
        else:
            store = distributed.TCPStore("127.0.0.1", self.listener.getsockname()[1], self.size, False, use_libuv=False)
        distributed.init_process_group("nccl" if self.device.is_cuda else "gloo", store=store, rank=self.rank,
                                       world_size=self.size)

    def communicator(self):
        self.connect()
        self.token = self.torch.ones(1, device=self.device.name)
        self.torch.distributed.all_reduce(self.token)

    def second_communicator(self):
        group = self.torch.distributed.new_group(list(range(self.size)))
        self.torch.distributed.all_reduce(self.torch.ones(1, device=self.device.name), group=group)

    def ddp(self):
        wrapped = self.torch.nn.parallel.DistributedDataParallel(self.network())
        self.step(wrapped)

    def fsdp(self):
        from torch.distributed.fsdp import fully_shard
        network = self.network()
        for layer in network:
            fully_shard(layer)
        self.step(fully_shard(network))

    def measure(self):
        self.device.open()
        self.torch = self.meter.torch = self.device.torch
        import torch.distributed
        if not torch.distributed.is_available():
            raise RuntimeError("torch %s is built without torch.distributed" % torch.__version__)
        self.stages.read("context")
        free = self.device.free()
        self.step(self.network())  # the kernels of a job without collectives
        self.read("warmup")
        for stage in STAGES:
            try:
                getattr(self, stage)()
            except (ImportError, AttributeError, NotImplementedError, RuntimeError) as error:
                if stage in ("communicator", "second_communicator"):
                    raise
                self.missing[stage] = str(error).split("\n")[0]
                continue
            self.read(stage)
        allocated, reserved = self.device.peaks()
        torch.distributed.destroy_process_group()
        return {"environment": self.device.environment(), "memory_free_bytes": free, "stages": self.stages.readings,
                "allocated": allocated, "reserved": reserved, "metric": self.device.meter.metric(),
                "disturbed": self.device.meter.disturbed, "missing": self.missing,
                "resident_threads": self.device.resident_threads()}


def run_rank(spec, rank, device_name, listener, pipe):
    """In the forked process: writes the result, or why there is none, and ends."""
    if spec.get("channels"):
        os.environ["NCCL_MIN_NCHANNELS"] = os.environ["NCCL_MAX_NCHANNELS"] = str(spec["channels"])
    try:
        result = Rank(spec, rank, device_name, listener).measure()
    except Exception as error:
        result = {"failure": "%s: %s" % (type(error).__name__, str(error).split("\n")[0])}
    with os.fdopen(pipe, "w") as out:
        json.dump(result, out)
    os._exit(0)


def device_of(first, rank):
    if first == "cpu":
        return first
    return "cuda:%d" % (int(first.partition(":")[2] or 0) + rank)


def results_of(spec, first):
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    listener.listen(spec["ranks"])
    pipes = []
    for rank in range(spec["ranks"]):
        inside, outside = os.pipe()
        if os.fork() == 0:
            os.close(inside)
            run_rank(spec, rank, device_of(first, rank), listener, outside)
        os.close(outside)
        pipes.append(inside)
    listener.close()
    results = []
    for rank, pipe in enumerate(pipes):
        with os.fdopen(pipe) as text:
            answer = text.read()
        if not answer:
            raise RuntimeError("rank %d of %d ended without an answer" % (rank, spec["ranks"]))
        results.append(json.loads(answer))
    return results


def merged(results):
    """The largest reading of each stage; a stage that a rank could not reach is left out and noted."""
    for rank, result in enumerate(results):
        if "failure" in result:
            raise RuntimeError("rank %d: %s" % (rank, result["failure"]))
        if [one["stage"] for one in result["stages"]] != [one["stage"] for one in results[0]["stages"]]:
            raise RuntimeError("rank %d reached other stages than rank 0" % rank)
    stages, notes = [], []
    for position, reading in enumerate(results[0]["stages"]):
        of_ranks = [result["stages"][position]["device_used_bytes"] for result in results]
        stages.append({"stage": reading["stage"], "device_used_bytes": max(of_ranks)})
    for stage, why in sorted(results[0]["missing"].items()):
        notes.append("%s is not measured: %s" % (stage, why))
    reserved = [result["reserved"] for result in results]
    sample = {"status": "ok", "status_note": "; ".join(notes), "stages": stages,
              "allocated_peak_bytes": results[0]["allocated"], "reserved_peak_bytes": None if None in reserved else max(reserved),
              "device_metric": results[0]["metric"]}
    highest = max(reading["device_used_bytes"] for reading in stages)
    sample["device_peak_bytes"] = highest - stages[0]["device_used_bytes"] + (sample["reserved_peak_bytes"] or 0)
    disturbed = [result["disturbed"] for result in results if result["disturbed"]]
    if disturbed:
        sample.update(status="disturbed", status_note=disturbed[0])
    return sample


def answer(request, spec):
    if "torch" in sys.modules:
        raise RuntimeError("torch is loaded already: its processes cannot be forked")
    results = results_of(spec, request["device"])
    sample = merged(results)
    return {"environment": results[0]["environment"], "memory_free_bytes": results[0]["memory_free_bytes"], "sample": sample,
            "cudnn_directory": "", "resident_threads": results[0]["resident_threads"]}

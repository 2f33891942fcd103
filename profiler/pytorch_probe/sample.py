"""One sample of one job: its stages, its peaks, and how it ended."""
import json
import os
import time

from . import history, ranks
from .cupti import Activity
from .device import Device
from .environment import loaded_library
from .graphs import GraphLoop
from .loop import Loop
from .meters import Stages

# The smallest jobs that make a library initialize; the same as in memfathom's own probe.
FIRST_USES = [
    ("cublas", [16], 4, {"type": "linear", "in": 16, "out": 16}),
    ("cudnn", [4, 8, 8], 2, {"type": "conv2d", "in": 4, "out": 4, "kernel": 3, "padding": 1}),
    ("cufft", [4, 16, 16], 2, {"type": "spectral_conv", "in": 4, "out": 4, "modes": [4, 4]}),
]


def is_out_of_memory(error):
    return type(error).__name__ == "OutOfMemoryError" or "allocate memory" in str(error) or "out of memory" in str(error)


def run_job(request, device, stages, sample):
    for stage, shape, batch, layer in FIRST_USES:
        if request[stage]:
            job = {"model": {"input": {"shape": shape}, "layers": [layer], "loss": "mean"},
                   "training": {"batch_size": batch, "optimizer": "none"}}
            Loop(device.torch, job, device.name).iterate()
            device.give_back()
            stages.read(stage)
    stages.thread.start()
    job = json.loads(request["job"])
    loop = Loop(device.torch, job, device.name)
    if job.get("execution") == "cuda-graph":
        loop = GraphLoop(loop)
    device.synchronize()
    stages.read("tensors")
    for step in range(3):
        if step == 1:
            start = time.perf_counter()
        loop.iterate()
        device.synchronize()
        if step == 0:
            stages.read("warmup")
    sample["seconds_per_step"] = (time.perf_counter() - start) / 2
    stages.read("steps")


def take_sample(request, device, stages):
    sample = {"status": "ok"}
    device.limit(request["ceiling_bytes"])
    try:
        run_job(request, device, stages, sample)
    except RuntimeError as error:
        if not is_out_of_memory(error):
            raise
        sample.update(status="out_of_memory", status_note=str(error).split("\n")[0])
    stages.done.set()
    sample["allocated_peak_bytes"], sample["reserved_peak_bytes"] = device.peaks()
    sample["device_peak_bytes"] = stages.peak()
    sample["device_metric"] = device.meter.metric()
    if device.meter.disturbed and sample["status"] == "ok":
        sample.update(status="disturbed", status_note=device.meter.disturbed)
    sample["stages"] = stages.readings
    return sample


def answer(request):
    collectives = json.loads(request["job"]).get("collectives") if request["workload"] else None
    if collectives:
        return ranks.answer(request, collectives)
    device = Device(request["device"])
    options = json.loads(request["job"]).get("allocator", {}).get("options") if request["workload"] else None
    if options:
        os.environ["PYTORCH_CUDA_ALLOC_CONF"] = options  # which torch reads when it is loaded
    stages = Stages(device.meter)
    activity = None
    if request.get("driver_records") and device.is_cuda:
        device.load()  # with it comes the CUPTI of its CUDA
        activity = Activity(device.index, loaded_library("cupti"))
        stages.follow(activity)
    device.open()
    stages.read("context")
    free = device.free()  # before the job
    sample = take_sample(request, device, stages) if request["workload"] else None
    driver = activity.finish() if activity else None
    if request.get("trace") and sample["status"] == "ok":
        history.record(json.loads(request["job"]), device, request["trace"])
    return {"environment": device.environment(), "memory_free_bytes": free, "sample": sample,
            "cudnn_directory": os.path.dirname(loaded_library("cudnn")) if device.is_cuda else "",
            "resident_threads": device.resident_threads(), "devices": device.count(), "driver": driver}

"""Meters of the device's memory (NVML, CUDA's mem_get_info, or /proc) and the readings after each stage."""
import os
import re
import sys
import threading

SAMPLING_SECONDS = 0.005


class NvmlMeter:
    """This process, else the GPU's growth, else (where NVML tells neither, as on some integrated GPUs) `by_cuda`."""

    def __init__(self, nvml, by_cuda):
        self.nvml, self.before, self.device_before = nvml, nvml.processes(), nvml.used()
        self.by_cuda = by_cuda
        self.own, self.disturbed = False, ""
        # torch is not loaded yet: an entry with our id is a host process, seen from a container.
        self.has_namesake = os.getpid() in self.before

    def used(self):
        now = self.nvml.processes()
        listed = not self.has_namesake and os.getpid() in now
        own = now.pop(os.getpid()) if listed else None
        # A process that is listed has a context: 0 means that the driver does not report its memory, as
        # drivers before 565.57.01 in containers (profiler/gpu_meter.cc says why).
        if own:
            self.own, self.disturbed = True, ""
        if self.own:
            return own or 0  # others do not change it
        if listed:
            self.compare(now)
        if self.device_before is None:
            return self.by_cuda.used()
        return max(self.nvml.used() - self.device_before, 0)

    def compare(self, others):
        before = {pid: used for pid, used in self.before.items() if pid != os.getpid()}
        for pid in sorted(set(others) | set(before)):
            if self.disturbed or others.get(pid, -1) == before.get(pid, -1):
                continue
            verb = ("started using" if pid not in before else
                    "stopped using" if pid not in others else "changed its memory use on")
            self.disturbed = "process %d %s the device" % (pid, verb)

    def metric(self):
        if self.own:
            return "nvml-process"
        return self.by_cuda.metric() if self.device_before is None else "nvml-device"


class MemGetInfoMeter:
    """The whole GPU, from CUDA: it cannot be read before the context exists."""
    disturbed = ""

    def __init__(self, index):
        self.index = index

    def used(self):
        if "torch" not in sys.modules:
            return 0
        free, total = sys.modules["torch"].cuda.mem_get_info(self.index)
        return total - free

    def metric(self):
        return "mem-get-info"


class RssMeter:
    disturbed = ""

    @staticmethod
    def line(key):
        with open("/proc/self/status") as status:
            return int(re.search(key + r":\s*(\d+)", status.read()).group(1)) * 1024

    def used(self):
        if self.line("VmSwap") > 0:
            self.disturbed = "parts of the process were swapped out"
        return self.line("VmRSS")

    def high_water(self):
        return self.line("VmHWM")

    def metric(self):
        return "rss"


class Stages:
    """The readings after each stage, and the highest one, including those of a sampling thread."""

    def __init__(self, meter):
        self.meter, self.readings, self.highest, self.activity = meter, [], 0, None
        self.lock, self.done = threading.Lock(), threading.Event()
        self.thread = threading.Thread(target=self.watch, daemon=True)
        self.read("baseline")

    def take(self):
        with self.lock:
            used = self.meter.used()
            self.highest = max(self.highest, used)
            return used

    def read(self, stage):
        self.readings.append({"stage": stage, "device_used_bytes": self.take()})
        if self.activity:
            self.activity.mark()

    def follow(self, activity):
        """Marks every reading in `activity` too, those that were taken already as of now."""
        self.activity = activity
        for _ in self.readings:
            activity.mark()

    def watch(self):
        while not self.done.wait(SAMPLING_SECONDS):
            try:
                self.take()
            except OSError:  # skipped: the readings after each stage report it
                continue

    def peak(self):
        if hasattr(self.meter, "high_water"):
            self.highest = max(self.highest, self.meter.high_water())
        return self.highest - self.readings[0]["device_used_bytes"]

"""The device that is measured: cpu or cuda:N."""
import gc
import os
import sys

from .environment import cpu_environment, cuda_environment, first_match
from .meters import MemGetInfoMeter, NvmlMeter, RssMeter
from .nvml import Nvml


class Device:
    """cpu or cuda:N: its meter, created before torch is loaded, and what differs between the two."""

    def __init__(self, name):
        self.name, self.is_cuda, self.nvml = name, name.startswith("cuda"), None
        if not self.is_cuda:
            if name != "cpu":
                raise ValueError("PyTorch is measured on cpu or cuda:N, not on %s" % name)
            self.meter = RssMeter()
            return
        os.environ.setdefault("CUDA_DEVICE_ORDER", "PCI_BUS_ID")  # as NVML counts
        self.index = int(name.partition(":")[2] or 0)
        try:
            self.nvml = Nvml(self.index)
            self.meter = NvmlMeter(self.nvml, MemGetInfoMeter(self.index))
        except OSError:
            self.meter = MemGetInfoMeter(self.index)

    def load(self):
        """Loads torch, which needs no context yet."""
        try:
            import torch
            import torch.utils.checkpoint
        except ImportError as error:
            raise RuntimeError("%s has no torch (%s); name a Python that has it with --python" % (sys.executable, error))
        self.torch = torch

    def open(self):
        self.load()
        torch = self.torch
        if not self.is_cuda:
            return
        if not torch.cuda.is_available():
            raise RuntimeError("torch %s sees no GPU" % torch.__version__)
        torch.cuda.set_device(self.index)
        torch.zeros(1, device=self.name)
        self.give_back()

    def environment(self):
        own = cuda_environment(self.torch, self.index, self.nvml) if self.is_cuda else cpu_environment(self.torch)
        return {**own, "framework": "pytorch", "framework_version": self.torch.__version__}

    def free(self):
        if self.is_cuda:
            return self.torch.cuda.mem_get_info(self.index)[0]
        with open("/proc/meminfo") as meminfo:
            return int(first_match(r"MemAvailable:\s*(\d+)", meminfo.read())) * 1024

    def resident_threads(self):
        """That the GPU can hold at once: the driver keeps memory for each. 0 where torch does not tell."""
        if not self.is_cuda:
            return 0
        properties = self.torch.cuda.get_device_properties(self.index)
        return properties.multi_processor_count * getattr(properties, "max_threads_per_multi_processor", 0)

    def count(self):
        """How many ranks of a collective this machine can run: one on each GPU from this one on, or Gloo's on the cpu."""
        return self.torch.cuda.device_count() - self.index if self.is_cuda else len(os.sched_getaffinity(0))

    def limit(self, ceiling):
        if self.is_cuda:
            total = self.torch.cuda.get_device_properties(self.index).total_memory
            self.torch.cuda.set_per_process_memory_fraction(min(ceiling / total, 1.0), self.index)

    def synchronize(self):
        if self.is_cuda:
            self.torch.cuda.synchronize(self.index)

    def give_back(self):
        """Releases the allocator's cache and resets its statistics."""
        gc.collect()
        if not self.is_cuda:
            return
        self.synchronize()
        clear = getattr(self.torch._C, "_cuda_clearCublasWorkspaces", None)
        if clear:
            clear()
        self.torch.cuda.empty_cache()
        self.torch.cuda.reset_peak_memory_stats(self.index)

    def peaks(self):
        if not self.is_cuda:
            return None, None  # there is no caching allocator
        return self.torch.cuda.max_memory_allocated(self.index), self.torch.cuda.max_memory_reserved(self.index)

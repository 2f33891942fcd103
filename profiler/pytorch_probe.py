"""Takes one sample of one training job in PyTorch: the request is JSON on standard input, the reply on standard output.

`memfathom calibrate --framework pytorch` runs this file with the Python of --python, once per sample. It uses the same
messages (profiler/probe_message.h) and stages as memfathom's own probe. It needs Python 3.8 and torch, and writes no
file. A job is a stack of layers (docs/jobs.md); unsupported layers are rejected.
"""
import sys

sys.path[:] = [path for path in sys.path if path]  # before anything else: a json.py or torch.py of the cwd is not ours

import ctypes
import gc
import json
import os
import platform
import re
import threading
import time

NOT_AVAILABLE = (1 << 64) - 1
NOT_SUPPORTED, NO_PERMISSION = 3, 4  # the NVML codes that callers handle
SAMPLING_SECONDS = 0.005


# Meters of the device's memory: NVML, CUDA's mem_get_info, or /proc.
class NvmlMemory(ctypes.Structure):
    _fields_ = [("version", ctypes.c_uint), ("total", ctypes.c_ulonglong), ("reserved", ctypes.c_ulonglong),
                ("free", ctypes.c_ulonglong), ("used", ctypes.c_ulonglong)]


class NvmlProcess(ctypes.Structure):
    _fields_ = [("pid", ctypes.c_uint), ("used", ctypes.c_ulonglong), ("gpu_instance", ctypes.c_uint),
                ("compute_instance", ctypes.c_uint)]


class LongNvmlProcess(ctypes.Structure):
    """The entry that drivers 535.43 to 535.86 fill instead, under the same name and version."""
    _fields_ = NvmlProcess._fields_ + [("used_protected", ctypes.c_ulonglong)]


class NvmlRefusal(OSError):
    def __init__(self, name, code):
        super().__init__("NVML: %s gives %d" % (name, code))
        self.code = code


class Nvml:
    """GPU `index`, numbered as CUDA does: by PCI bus and CUDA_VISIBLE_DEVICES. Raises OSError without NVML."""

    def __init__(self, index):
        self.library, self.entries = ctypes.CDLL(os.environ.get("MEMFATHOM_NVML", "libnvidia-ml.so.1")), None
        self.call("nvmlInit_v2")
        visible = os.environ.get("CUDA_VISIBLE_DEVICES")
        entry = str(index) if visible is None else (visible.split(",") + [""] * index)[index].strip()
        if entry.startswith(("GPU-", "MIG-")):
            self.device = self.by_uuid(entry)
        elif entry.isdigit():
            self.device = self.by_number(int(entry))
        else:
            raise OSError("CUDA_VISIBLE_DEVICES is %s; GPU %d is not visible" % (visible, index))
        self.gpu = self.device  # the whole GPU; in MIG mode a job gets an instance
        if entry.startswith("MIG-"):
            self.gpu = self.handle("nvmlDeviceGetDeviceHandleFromMigDeviceHandle", self.device)
        elif self.mode("nvmlDeviceGetMigMode"):
            self.device = self.first_instance()

    def handle(self, name, *arguments):
        found = ctypes.c_void_p()
        self.call(name, *arguments, ctypes.byref(found))
        return found

    def gpus(self):
        """Without GPUs that the device cgroup hides, which CUDA does not number."""
        count, found = ctypes.c_uint(0), []
        self.call("nvmlDeviceGetCount_v2", ctypes.byref(count))
        for index in range(count.value):
            try:
                found.append(self.handle("nvmlDeviceGetHandleByIndex_v2", ctypes.c_uint(index)))
            except NvmlRefusal as refusal:
                if refusal.code != NO_PERMISSION:
                    raise
        return found

    def by_number(self, number):
        gpus = self.gpus()
        if number >= len(gpus):
            raise OSError("NVML has no GPU %d" % number)
        return gpus[number]

    def by_uuid(self, beginning):
        """CUDA accepts a unique prefix of a UUID, NVML needs all of it."""
        try:
            return self.handle("nvmlDeviceGetHandleByUUID", beginning.encode())
        except OSError:
            text = ctypes.create_string_buffer(128)
        for gpu in self.gpus():
            self.call("nvmlDeviceGetUUID", gpu, text, ctypes.c_uint(len(text)))
            if text.value.decode().startswith(beginning):
                return gpu
        raise OSError("NVML has no GPU %s" % beginning)

    def first_instance(self):
        for index in range(7):
            try:
                return self.handle("nvmlDeviceGetMigDeviceHandleByIndex", self.gpu, ctypes.c_uint(index))
            except OSError:
                continue
        return self.gpu

    def call(self, name, *arguments):
        try:
            code = getattr(self.library, name)(*arguments)
        except AttributeError:
            raise OSError("NVML has no " + name)
        if code != 0:
            raise NvmlRefusal(name, code)

    def driver(self):
        text = ctypes.create_string_buffer(128)
        self.call("nvmlSystemGetDriverVersion", text, ctypes.c_uint(len(text)))
        return text.value.decode()

    def mode(self, name):
        """ECC or MIG; off on GPUs without it."""
        current, pending = ctypes.c_uint(0), ctypes.c_uint(0)
        try:
            self.call(name, self.gpu, ctypes.byref(current), ctypes.byref(pending))
        except OSError:
            return False
        return current.value == 1

    def used(self):
        """None where the GPU shares the system's memory: it does not report its own."""
        memory = NvmlMemory(version=ctypes.sizeof(NvmlMemory) | 2 << 24)
        try:
            self.call("nvmlDeviceGetMemoryInfo_v2", self.device, ctypes.byref(memory))
        except NvmlRefusal as refusal:
            if refusal.code != NOT_SUPPORTED:
                raise
            return None
        return memory.used

    def process_list(self):
        """The name of NVML's function and the entries that it fills, found once: readings are 5 ms apart."""
        if self.entries is None:
            name = "nvmlDeviceGetComputeRunningProcesses_v"
            newer = hasattr(self.library, name + "3")
            # Functions added with the long entries, and after them.
            is_long = (newer and hasattr(self.library, "nvmlDeviceGetConfComputeMemSizeInfo")
                       and not hasattr(self.library, "nvmlDeviceGetRunningProcessDetailList"))
            self.entries = (name + ("3" if newer else "2"), ((LongNvmlProcess if is_long else NvmlProcess) * 1024)())
        return self.entries

    def processes(self):
        """Bytes by process id, None if NVML does not report them. Empty if it does not report processes."""
        name, found = self.process_list()
        count = ctypes.c_uint(len(found))
        try:
            self.call(name, self.device, ctypes.byref(count), found)
        except NvmlRefusal as refusal:
            if refusal.code in (NOT_SUPPORTED, NO_PERMISSION):
                return {}
            raise
        return {p.pid: None if p.used == NOT_AVAILABLE else p.used for p in found[:count.value]}


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
        self.meter, self.readings, self.highest = meter, [], 0
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

    def watch(self):
        while not self.done.wait(SAMPLING_SECONDS):
            self.take()

    def peak(self):
        if hasattr(self.meter, "high_water"):
            self.highest = max(self.highest, self.meter.high_water())
        return self.highest - self.readings[0]["device_used_bytes"]


# The environment of PyTorch.
def loaded_library(name, maps="/proc/self/maps"):
    """The path of a library that this process has loaded; empty if it has not."""
    with open(maps) as lines:
        paths = {line.split(None, 5)[-1].strip() for line in lines if "/lib%s.so" % name in line}
    return min(paths, default="")


def library_version(name, symbol):
    """The version of a CUDA library that this process has loaded."""
    path = loaded_library(name)
    if path:
        get, parts = getattr(ctypes.CDLL(path), symbol), []
        for which in range(3):
            value = ctypes.c_int()
            get(which, ctypes.byref(value))
            parts.append(str(value.value))
        return ".".join(parts)
    return ""


def module_loading(open_library=ctypes.CDLL):
    """When CUDA loads kernels: lazy or eager. Empty if the driver does not say (before 11.7). After torch's first call."""
    mode = ctypes.c_int()
    try:
        code = open_library("libcuda.so.1").cuModuleGetLoadingMode(ctypes.byref(mode))
    except (OSError, AttributeError):
        return ""
    return {1: "eager", 2: "lazy"}.get(mode.value, "") if code == 0 else ""


def first_match(pattern, text):
    found = re.search(pattern, text)
    return found.group(1).strip() if found else ""


def cpu_environment(torch):
    with open("/proc/cpuinfo") as cpuinfo:
        model = first_match(r"model name\s*:\s*(.*)", cpuinfo.read()) or "unknown"
    with open("/proc/meminfo") as meminfo:
        total = int(first_match(r"MemTotal:\s*(\d+)", meminfo.read())) * 1024
    try:
        with open("/etc/os-release") as release:
            system = first_match(r'PRETTY_NAME="?([^"\n]*)', release.read())
    except OSError:
        system = "unknown"
    config = torch.__config__.show()
    onednn = first_match(r"MKL-DNN v([\d.]+)", config)
    mkl = first_match(r"Math Kernel Library Version ([\d.]+)", config)
    return {"gpu": "%s, %d cores (cpu)" % (model, len(os.sched_getaffinity(0))), "architecture": platform.machine(),
            "memory_total_bytes": total, "driver": "%s %s" % (platform.system(), platform.release()),
            "cublas": "MKL " + mkl if mkl else "", "cudnn": "oneDNN " + onednn if onednn else "",
            "cufft": "MKL " + mkl if mkl else "", "os": system}


def cuda_environment(torch, index, nvml):
    properties = torch.cuda.get_device_properties(index)
    cudnn = torch.backends.cudnn.version() or 0
    scale = 10000 if cudnn >= 90000 else 1000
    return {"gpu": properties.name, "architecture": "sm_%d%d" % (properties.major, properties.minor),
            "memory_total_bytes": properties.total_memory,
            "ecc": nvml.mode("nvmlDeviceGetEccMode") if nvml else False,
            "mig": "enabled" if nvml and nvml.mode("nvmlDeviceGetMigMode") else "",
            "driver": nvml.driver() if nvml else "", "cuda": torch.version.cuda or "",
            "cublas": library_version("cublas", "cublasGetProperty"),
            "cudnn": "%d.%d.%d" % (cudnn // scale, cudnn % scale // 100, cudnn % 100) if cudnn else "",
            "cufft": library_version("cufft", "cufftGetProperty"), "module_loading": module_loading(),
            "os": "%s %s" % (platform.system(), platform.release())}


# Jobs as PyTorch modules, each written as in its library or in typical scripts.
def make_layers(torch):
    nn, functional = torch.nn, torch.nn.functional

    class Attention(nn.Module):
        def __init__(self, spec, causal, bias):
            super().__init__()
            hidden = spec["hidden"]
            self.heads, self.causal = spec["heads"], causal
            self.eager = spec.get("implementation") == "eager"
            self.q, self.k, self.v, self.o = (nn.Linear(hidden, hidden, bias=bias) for _ in range(4))

        def forward(self, x):
            batch, length, hidden = x.shape
            size = hidden // self.heads
            q, k, v = (p(x).view(batch, length, -1, size).transpose(1, 2) for p in (self.q, self.k, self.v))
            if self.eager:
                scores = torch.matmul(q, k.transpose(2, 3)) * size ** -0.5
                scores = functional.softmax(scores, -1, dtype=torch.float32).to(q.dtype)
                out = torch.matmul(scores, v)
            else:
                out = functional.scaled_dot_product_attention(q, k, v, is_causal=self.causal)
            return self.o(out.transpose(1, 2).reshape(batch, length, hidden))

    class Gated(nn.Module):
        def __init__(self, hidden, inner):
            super().__init__()
            self.gate, self.up = nn.Linear(hidden, inner, bias=False), nn.Linear(hidden, inner, bias=False)
            self.down = nn.Linear(inner, hidden, bias=False)

        def forward(self, x):
            return self.down(functional.silu(self.gate(x)) * self.up(x))

    class Block(nn.Module):
        def __init__(self, spec):
            super().__init__()
            hidden, inner, style = spec["hidden"], spec.get("ffn", 4 * spec["hidden"]), spec["style"]
            if style not in ("gpt2", "llama", "vit"):
                raise ValueError("the probe has no transformer block of style %s" % style)
            llama = style == "llama"
            self.attention = Attention(spec, causal=style != "vit", bias=not llama)
            self.mlp = Gated(hidden, inner) if llama else nn.Sequential(
                nn.Linear(hidden, inner), nn.GELU(), nn.Linear(inner, hidden))
            norm = nn.RMSNorm if llama else nn.LayerNorm
            self.norm1, self.norm2 = norm(hidden), norm(hidden)

        def forward(self, x):
            x = x + self.attention(self.norm1(x))
            return x + self.mlp(self.norm2(x))

    class Spectral(nn.Module):
        def __init__(self, inside, outside, modes):
            super().__init__()
            self.outside, self.modes = outside, modes
            shape = (inside, outside, *modes)
            self.weights1 = nn.Parameter(torch.zeros(shape, dtype=torch.cfloat))
            self.weights2 = nn.Parameter(torch.zeros(shape, dtype=torch.cfloat))

        def forward(self, x):
            m1, m2 = self.modes
            spectrum = torch.fft.rfft2(x)
            out = torch.zeros(x.shape[0], self.outside, x.shape[-2], x.shape[-1] // 2 + 1, dtype=torch.cfloat,
                              device=x.device)
            out[:, :, :m1, :m2] = torch.einsum("bixy,ioxy->boxy", spectrum[:, :, :m1, :m2], self.weights1)
            out[:, :, -m1:, :m2] = torch.einsum("bixy,ioxy->boxy", spectrum[:, :, -m1:, :m2], self.weights2)
            return torch.fft.irfft2(out, s=x.shape[-2:])

    class FnoBlock(nn.Module):
        def __init__(self, spec):
            super().__init__()
            if spec.get("style", "classic") != "classic":
                raise ValueError("the probe has no fno block of style %s" % spec["style"])
            self.spectral = Spectral(spec["width"], spec["width"], spec["modes"])
            self.skip = nn.Conv2d(spec["width"], spec["width"], 1)

        def forward(self, x):
            return functional.gelu(self.spectral(x) + self.skip(x))

    class Residual(nn.Module):
        def __init__(self, spec):
            super().__init__()
            self.layers = nn.Sequential(*build(spec["layers"]))

        def forward(self, x):
            return self.layers(x) + x

    class Checkpoint(nn.Module):
        def __init__(self, spec):
            super().__init__()
            self.layers = nn.Sequential(*build(spec["layers"]))

        def forward(self, x):
            return torch.utils.checkpoint.checkpoint(self.layers, x, use_reentrant=False)

    def convolution(kind, s):
        return kind(s["in"], s["out"], s["kernel"], stride=s.get("stride", 1), padding=s.get("padding", 0),
                    groups=s.get("groups", 1), bias=s.get("bias", True))

    makers = {
        "linear": lambda s: nn.Linear(s["in"], s["out"], bias=s.get("bias", True)),
        "conv2d": lambda s: convolution(nn.Conv2d, s),
        "conv_transpose2d": lambda s: convolution(nn.ConvTranspose2d, s),
        "batch_norm": lambda s: nn.BatchNorm2d(s["features"]),
        "layer_norm": lambda s: nn.LayerNorm(s["features"]),
        "rms_norm": lambda s: nn.RMSNorm(s["features"]),
        "group_norm": lambda s: nn.GroupNorm(s["groups"], s["features"]),
        "max_pool2d": lambda s: nn.MaxPool2d(s["kernel"], s.get("stride", s["kernel"]), s.get("padding", 0)),
        "embedding": lambda s: nn.Embedding(s["vocab"], s["size"]),
        "flatten": lambda s: nn.Flatten(1),
        "relu": lambda s: nn.ReLU(), "gelu": lambda s: nn.GELU(), "silu": lambda s: nn.SiLU(),
        "tanh": lambda s: nn.Tanh(), "sigmoid": lambda s: nn.Sigmoid(),
        "attention": lambda s: Attention(s, causal=s.get("causal", True), bias=s.get("bias", False)),
        "transformer_block": Block,
        "spectral_conv": lambda s: Spectral(s["in"], s["out"], s["modes"]),
        "fno_block": FnoBlock,
        "residual": Residual,
        "checkpoint": Checkpoint,
    }

    def build(specs):
        layers = []
        for spec in specs:
            if spec["type"] == "repeat":
                for _ in range(spec["times"]):
                    layers += build(spec["layers"])
            elif spec["type"] in makers:
                layers.append(makers[spec["type"]](spec))
            else:
                raise ValueError("the probe has no layer of type %s" % spec["type"])
        return layers

    return build


PRECISIONS = {"fp32": None, "amp-bf16": "bfloat16"}  # autocast type; parameters are fp32


class Loop:
    """A job's model, and its training iterations as in typical scripts."""

    def __init__(self, torch, job, device):
        self.torch, self.device = torch, device
        model, training = job["model"], job.get("training", {})
        precision = training.get("precision", "fp32")
        if precision not in PRECISIONS:
            raise ValueError("the probe has no precision %s" % precision)
        self.autocast = getattr(torch, PRECISIONS[precision]) if PRECISIONS[precision] else None
        self.input, self.loss_name = model["input"], model["loss"]
        self.shape = (training.get("batch_size", 1), *self.input["shape"])
        self.keeps_input = self.input.get("requires_grad", False)
        with torch.device(device):
            self.model = torch.nn.Sequential(*make_layers(torch)(model["layers"]))
        self.target_shape = self.shape_of_target(model)
        self.optimizer = self.make_optimizer(training.get("optimizer", "adamw"))
        self.x = self.target = self.output = self.loss = None

    def shape_of_target(self, model):
        if self.loss_name == "mean":
            return None
        if self.loss_name == "cross_entropy":
            return self.shape[:1]
        if self.loss_name != "mse":
            raise ValueError("the probe has no loss %s" % self.loss_name)
        torch = self.torch
        with torch.no_grad(), torch.device("meta"):
            return torch.nn.Sequential(*make_layers(torch)(model["layers"]))(torch.zeros(self.shape)).shape

    def make_optimizer(self, name):
        optim, parameters = self.torch.optim, list(self.model.parameters())
        makers = {"none": lambda p: None, "sgd": lambda p: optim.SGD(p, lr=1e-3),
                  "sgd-momentum": lambda p: optim.SGD(p, lr=1e-3, momentum=0.9),
                  "adam": lambda p: optim.Adam(p), "adamw": lambda p: optim.AdamW(p)}
        if name not in makers:
            raise ValueError("the probe has no optimizer %s" % name)
        return makers[name](parameters)

    def load(self):
        """Frees the old batch, then creates a new one, as data loaders do; an input with a gradient is kept."""
        torch = self.torch
        if self.x is not None and self.keeps_input:
            return
        self.x = self.target = None
        dtype = torch.int64 if self.input.get("dtype") == "int64" else torch.float32
        self.x = torch.zeros(self.shape, dtype=dtype, device=self.device, requires_grad=self.keeps_input)
        if self.target_shape is not None:
            dtype = torch.int64 if self.loss_name == "cross_entropy" else torch.float32
            self.target = torch.zeros(self.target_shape, dtype=dtype, device=self.device)

    def criterion(self, output):
        functional = self.torch.nn.functional
        if self.loss_name == "mean":
            return output.mean()
        return (functional.mse_loss if self.loss_name == "mse" else functional.cross_entropy)(output, self.target)

    def clear_gradients(self):
        self.model.zero_grad(set_to_none=True)
        if self.keeps_input:
            self.x.grad = None

    def iterate(self):
        self.load()
        self.clear_gradients()
        with self.torch.autocast(self.device.split(":")[0], self.autocast or self.torch.bfloat16,
                                 enabled=self.autocast is not None):
            if self.keeps_input:
                self.loss = self.criterion(self.model(self.x))
            else:
                self.output = self.model(self.x)
                self.loss = self.criterion(self.output)
        self.loss.backward()
        if self.optimizer is not None:
            self.optimizer.step()


# The smallest jobs that make a library initialize; the same as in memfathom's own probe.
FIRST_USES = [
    ("cublas", [16], 4, {"type": "linear", "in": 16, "out": 16}),
    ("cudnn", [4, 8, 8], 2, {"type": "conv2d", "in": 4, "out": 4, "kernel": 3, "padding": 1}),
    ("cufft", [4, 16, 16], 2, {"type": "spectral_conv", "in": 4, "out": 4, "modes": [4, 4]}),
]


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

    def open(self):
        try:
            import torch
            import torch.utils.checkpoint
        except ImportError as error:
            raise RuntimeError("%s has no torch (%s); name a Python that has it with --python" % (sys.executable, error))
        self.torch = torch
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
    loop = Loop(device.torch, json.loads(request["job"]), device.name)
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
    device = Device(request["device"])
    stages = Stages(device.meter)
    device.open()
    stages.read("context")
    free = device.free()  # before the job
    sample = take_sample(request, device, stages) if request["workload"] else None
    return {"environment": device.environment(), "memory_free_bytes": free, "sample": sample,
            "cudnn_directory": os.path.dirname(loaded_library("cudnn")) if device.is_cuda else "",
            "resident_threads": device.resident_threads()}


def main():
    reply_to = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what libraries print is no answer
    try:
        reply_to.write(json.dumps(answer(json.load(sys.stdin))))
    except Exception as error:  # one sentence, whatever it is
        kind = "" if type(error) in (RuntimeError, ValueError) else type(error).__name__ + ": "
        sys.exit("%s%s" % (kind, str(error).split("\n")[0]))


if __name__ == "__main__":
    main()

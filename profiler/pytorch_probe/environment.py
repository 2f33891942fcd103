"""The environment of PyTorch: GPU, driver and the libraries that this process has loaded."""
import ctypes
import os
import platform
import re


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

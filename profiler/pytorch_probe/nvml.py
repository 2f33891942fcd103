"""GPU memory by NVML through ctypes: the GPU that CUDA numbers so, its use and its processes."""
import ctypes
import os

NOT_AVAILABLE = (1 << 64) - 1
NOT_SUPPORTED, NO_PERMISSION = 3, 4  # the NVML codes that callers handle


class NvmlMemory(ctypes.Structure):
    _fields_ = [("version", ctypes.c_uint), ("total", ctypes.c_ulonglong), ("reserved", ctypes.c_ulonglong),
                ("free", ctypes.c_ulonglong), ("used", ctypes.c_ulonglong)]


class OldNvmlMemory(ctypes.Structure):
    _fields_ = [("total", ctypes.c_ulonglong), ("free", ctypes.c_ulonglong), ("used", ctypes.c_ulonglong)]


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
        newer = NvmlMemory(version=ctypes.sizeof(NvmlMemory) | 2 << 24)
        for name, memory in (("nvmlDeviceGetMemoryInfo_v2", newer), ("nvmlDeviceGetMemoryInfo", OldNvmlMemory())):
            if not hasattr(self.library, name):
                continue
            try:
                self.call(name, self.device, ctypes.byref(memory))
                return memory.used
            except NvmlRefusal as refusal:
                if refusal.code != NOT_SUPPORTED:
                    raise
        return None

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

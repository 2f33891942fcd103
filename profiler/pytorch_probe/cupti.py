"""The driver's memory operations of this process, recorded by CUPTI through ctypes.

What profiler/driver_activity.cc does in memfathom's own probe; the layout and the versions are those of
profiler/cupti_library.h. CUPTI takes memory of its own in a context: readings beside it are no sample."""
import ctypes
import os
import threading

MEMORY_KIND, FORCED_FLUSH = 49, 1
ALLOCATION, RELEASE = 1, 2
POOL = 8  # what profiler/driver_records.h calls memory from a pool
SUCCESS, MAX_LIMIT_REACHED = 0, 12
BUFFER_SIZE, MAX_RECORDS = 1 << 20, 200000
FIRST_WITH_SOURCE = 24
KNOWN_VERSIONS = (range(18, 29), range(130000, 140000))  # CUDA 11.8 to 12.9, and 13


class MemoryRecord(ctypes.Structure):
    """CUpti_ActivityMemory3, which ends before `source`, and CUpti_ActivityMemory4."""
    _fields_ = [("kind", ctypes.c_uint32), ("operation", ctypes.c_uint32), ("memory_kind", ctypes.c_uint32),
                ("correlation", ctypes.c_uint32), ("address", ctypes.c_uint64), ("bytes", ctypes.c_uint64),
                ("timestamp", ctypes.c_uint64), ("program_counter", ctypes.c_uint64), ("process", ctypes.c_uint32),
                ("device", ctypes.c_uint32), ("context", ctypes.c_uint32), ("stream", ctypes.c_uint32),
                ("name", ctypes.c_char_p), ("is_async", ctypes.c_uint32), ("padding", ctypes.c_uint32),
                ("pool", ctypes.c_uint64 * 5), ("source", ctypes.c_char_p)]


REQUEST = ctypes.CFUNCTYPE(None, ctypes.POINTER(ctypes.c_void_p), ctypes.POINTER(ctypes.c_size_t),
                           ctypes.POINTER(ctypes.c_size_t))
COMPLETE = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_uint32, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_size_t)


class Activity:
    """Records the operations on GPU `device`. Must start before the context exists; `missing` says why it does not."""

    def __init__(self, device, loaded_path=""):
        self.device, self.version, self.dropped, self.missing = device, 0, 0, ""
        self.modules, self.marks, self.records = [], [], []
        self.lock, self.buffers, self.has_source = threading.Lock(), {}, False
        self.callbacks = REQUEST(self.request), COMPLETE(self.complete)  # kept as long as CUPTI may call them
        try:
            self.library = self.open(loaded_path)
        except OSError as error:
            self.missing = "NVIDIA's library of profiling tools (libcupti) cannot be loaded: %s" % error
            return
        try:
            self.start()
        except AttributeError as error:
            self.missing = "libcupti lacks a function of its activity interface (%s)" % error

    @staticmethod
    def open(loaded_path):
        """The one that torch has loaded, else the system's. Without a driver CUPTI 13.2 ends the process."""
        if "MEMFATHOM_CUPTI" not in os.environ:
            ctypes.CDLL("libcuda.so.1")
        given = os.environ.get("MEMFATHOM_CUPTI") or loaded_path
        failure = OSError("no libcupti.so.13 or libcupti.so.12")
        for place in [given] if given else ["libcupti.so.13", "libcupti.so.12"]:
            try:
                return ctypes.CDLL(place)
            except OSError as error:
                failure = error
        raise failure

    def start(self):
        version = ctypes.c_uint32()
        self.expect(self.library.cuptiGetVersion(ctypes.byref(version)), "tell its version")
        self.version = version.value
        if not self.missing and not any(self.version in known for known in KNOWN_VERSIONS):
            self.missing = ("CUPTI has version %d; the records of 18 to 28 and of 130000 to 139999 are known (CUDA 11.8 to 13)"
                            % self.version)
        if self.missing:
            return
        self.next_record, self.get_dropped = self.library.cuptiActivityGetNextRecord, self.library.cuptiActivityGetNumDroppedRecords
        self.next_record.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.POINTER(ctypes.c_void_p)]
        self.get_dropped.argtypes = [ctypes.c_void_p, ctypes.c_uint32, ctypes.POINTER(ctypes.c_size_t)]
        self.expect(self.library.cuptiActivityRegisterCallbacks(*self.callbacks), "register its callbacks")
        self.expect(self.library.cuptiActivityEnable(MEMORY_KIND), "record memory operations")
        if not self.missing and self.version >= FIRST_WITH_SOURCE and hasattr(self.library, "cuptiActivityEnableAllocationSource"):
            self.has_source = self.library.cuptiActivityEnableAllocationSource(ctypes.c_uint8(1)) == SUCCESS

    def expect(self, status, what):
        if status == SUCCESS or self.missing:
            return
        name = ctypes.c_char_p()
        told = self.library.cuptiGetResultString(status, ctypes.byref(name)) == SUCCESS and name.value
        self.missing = "CUPTI cannot %s: %s" % (what, name.value.decode() if told else "an unknown error")

    def mark(self):
        if self.missing:
            return
        now = ctypes.c_uint64()
        self.expect(self.library.cuptiGetTimestamp(ctypes.byref(now)), "tell the time")
        self.marks.append(now.value)

    def request(self, buffer, size, records):
        memory = (ctypes.c_uint64 * (BUFFER_SIZE // 8))()  # which is aligned to 8 bytes
        address = ctypes.addressof(memory)
        self.buffers[address] = memory
        buffer[0], size[0], records[0] = address, BUFFER_SIZE, 0

    def complete(self, context, stream, buffer, size, valid):
        """From any thread, also within finish()."""
        with self.lock:
            self.read(buffer, valid)
            self.count_dropped(context, stream)
        self.buffers.pop(buffer, None)

    def read(self, buffer, valid):
        record = ctypes.c_void_p()
        status = self.next_record(buffer, valid, ctypes.byref(record)) if valid else MAX_LIMIT_REACHED
        while status == SUCCESS:
            self.take(record.value)
            status = self.next_record(buffer, valid, ctypes.byref(record))
        self.dropped += status != MAX_LIMIT_REACHED  # the rest is not readable

    def take(self, address):
        # As far as every version has it: the last record of a buffer may end before `source`.
        if ctypes.c_uint32.from_address(address).value != MEMORY_KIND:
            return
        record = MemoryRecord.from_address(address)
        if record.device != self.device or record.operation not in (ALLOCATION, RELEASE):
            return
        if len(self.records) == MAX_RECORDS:
            self.dropped += 1
            return
        self.records.append([record.timestamp, record.operation == ALLOCATION, POOL if record.is_async else record.memory_kind,
                             self.module_of(record.source) if self.has_source else -1, record.address, record.bytes])

    def module_of(self, source):
        if source is None:
            return -1
        name = source.decode(errors="replace")
        if name not in self.modules:
            self.modules.append(name)
        return self.modules.index(name)

    def count_dropped(self, context, stream):
        count = ctypes.c_size_t()
        if self.get_dropped(context, stream, ctypes.byref(count)) == SUCCESS:
            self.dropped += count.value

    def finish(self):
        """Ends the recording; the device's work must be complete. What the reply says of it."""
        if not self.missing:
            self.expect(self.library.cuptiActivityDisable(MEMORY_KIND), "stop recording")
            self.expect(self.library.cuptiActivityFlushAll(FORCED_FLUSH), "deliver its records")
            with self.lock:
                self.count_dropped(None, 0)  # there may have been no buffer to complete
        return {"version": self.version, "dropped": self.dropped, "missing": self.missing, "modules": self.modules,
                "marks": self.marks, "records": [] if self.missing else self.records}

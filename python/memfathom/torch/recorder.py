"""Recorder: notes every storage that a PyTorch program makes and drops on a GPU, on a machine without one.

Tensors on "cuda" are fake: shape, strides, type and device, no memory. Tensors on the CPU stay real, so data loaders and
tokenizers work as ever; only large float tensors of the CPU are fake too, so that a model of any size can be built. One
dispatch mode sees each aten call, notes a storage at first sight, and hears of its end by a weak reference.
"""
import gzip
import json
import os
import sys
import threading
import weakref

import torch
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode, UnsupportedOperatorException
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from . import kernels, values
from .operations import LARGE, SPECIAL, is_sized_by_values, sized_by_values, without_shape_function

aten = torch.ops.aten
CUDA, META = torch.device("cuda", 0), torch.device("meta")
ENGINE = torch.autograd.graph._engine_run_backward.__code__
TORCH_FOLDER = os.path.dirname(torch.__file__) + os.sep
OWN_FOLDER = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep  # of the package
FACTORIES = {"empty", "zeros", "ones", "full", "rand", "randn", "empty_strided", "normal", "arange", "eye", "linspace", "empty_like",
             "zeros_like", "ones_like", "full_like", "rand_like", "randn_like", "new_empty", "new_zeros", "new_ones", "new_full",
             "empty_permuted", "new_empty_strided"}
NO_CARD = "nocard"  # the accelerator that the autograd engine is told of (gpu.py)


def on_gpu(tensor):
    return isinstance(tensor, FakeTensor) and tensor.fake_device.type == "cuda"


class Recorder(TorchDispatchMode):
    @classmethod
    def _should_skip_dynamo(cls):
        return False

    def __init__(self):
        super().__init__()
        self.fake = FakeTensorMode(allow_non_fake_inputs=True, allow_fallback_kernels=False)
        self.events, self.storages, self.count = [], {}, 0
        self.phase, self.module = "load", ""
        self.live = self.peak = self.watermark = self.crest = self.fed = self.operations = self.paused = self.transforms = 0
        self.guesses, self.convolution_types = {}, {}
        self.lock, self.lines, self.composite = threading.RLock(), {}, {}
        self.asked = {}  # how often each line of the script has read an unknown value in this step
        self.gpus, self.current_gpu = set(), None  # the GPUs that the script names, and the one it set
        self.limit = None  # a full.Limit, if the script may be told that its GPU is full
        self.events.append({"op": "phase", "name": "load", "iteration": 0})

    # Events

    def guess(self, what, size=0):
        """Something the recording had to assume. `size`: bytes that depend on it."""
        times, largest = self.guesses.get(what, (0, 0))
        self.guesses[what] = (times + 1, max(largest, int(size)))

    def names_gpu(self, index):
        """The script places something on the GPU of this index; None: on its current one."""
        self.gpus.add(index if index is not None else self.current_gpu or 0)

    def take(self, storage, size, name, call=None, tag=None):
        if self.limit is not None:
            self.limit.check(size)
        self.count += 1
        event = {"op": "alloc", "id": self.count, "bytes": size, "phase": self.phase, "name": name}
        if self.module:
            event["module"] = self.module
        line = self.line_of_script()
        if line:
            event["line"] = line
        if tag:
            event["tag"] = tag
        if call:
            event.update(call)
        self.events.append(event)
        self.live += size
        self.peak, self.watermark, self.crest = max(self.peak, self.live), max(self.watermark, self.live), max(self.crest, self.live)
        self.fed += size if tag == "inputs" else 0
        if storage is not None:
            key = storage._cdata
            self.storages[key] = [self.count, size, weakref.ref(storage, lambda _, key=key: self._release(key)), event]
        return event

    def _release(self, key):
        ident, size, _, _ = self.storages.pop(key, (0, 0, None, None))
        if ident:
            self.live -= size
            self.events.append({"op": "free", "id": ident, "phase": self.phase})

    def work_area(self, size, name):
        """A buffer that a kernel allocates and releases by itself."""
        self.take(None, int(size), name, tag="temporaries")
        self.live -= int(size)
        self.events.append({"op": "free", "id": self.count, "phase": self.phase})

    def note(self, tensor, name, call=None, tag=None):
        """Returns True if the tensor brings a storage that was not there before."""
        if not on_gpu(tensor) or self.paused:
            return False
        if tensor.layout == torch.sparse_coo:
            return self.note(tensor._indices(), name, call, tag) | self.note(tensor._values(), name, None, tag)
        storage = tensor.untyped_storage()
        size = storage.nbytes()
        if storage._cdata in self.storages or size == 0:
            return False
        self.take(storage, size, name, call, tag)
        return True

    def resized(self, storage):
        """A storage was resized in place: FSDP frees and brings back parameters like this."""
        known = self.storages.get(storage._cdata)
        if known is None:
            return
        ident, size, reference, event = known
        if ident:
            self.live -= size
            self.events.append({"op": "free", "id": ident, "phase": self.phase})
        size = storage.nbytes()
        if not size:
            known[0] = known[1] = 0
            return
        fresh = self.take(None, size, event["name"], None, event.get("tag"))
        self.storages[storage._cdata] = [fresh["id"], size, reference, fresh]

    def tag(self, tensors, tag):
        for tensor in tensors:
            if on_gpu(tensor):
                self.note(tensor, "earlier")
                for known in self.known(tensor):
                    known[3]["tag"] = tag

    def known(self, tensor):
        """What is noted of a tensor's storages; a sparse tensor has two."""
        parts = (tensor._indices(), tensor._values()) if tensor.layout == torch.sparse_coo else (tensor,)
        return [found for part in parts for found in [self.storages.get(part.untyped_storage()._cdata)] if found]

    def line_of_script(self):
        """The line of the script, or of a library other than PyTorch, that made the call."""
        frame, library = sys._getframe(1), None
        while frame is not None:
            file = frame.f_code.co_filename
            kind = self.lines.get(file)
            if kind is None:
                inner = file.startswith((TORCH_FOLDER, OWN_FOLDER, "<")) or f"{os.sep}lib{os.sep}python" in file and "site-packages" not in file
                kind = self.lines[file] = "torch" if inner else "library" if "site-packages" in file else "script"
            if kind == "script":
                return f"{os.path.basename(file)}:{frame.f_lineno}"
            if kind == "library" and library is None:
                library = f"{'/'.join(file.split('site-packages' + os.sep)[-1].split(os.sep)[-3:])}:{frame.f_lineno}"
            frame = frame.f_back
        return library

    # Dispatch

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        return self.dispatch(func, types, args, kwargs or {}, sys._getframe(1).f_code is ENGINE)

    def dispatch(self, func, types, args, kwargs, from_engine=False):
        with self.lock:  # a fake mode belongs to one thread at a time
            return self._dispatch(func, types, args, kwargs, from_engine)

    def _dispatch(self, func, types, args, kwargs, from_engine):
        if func is torch.ops.prim.device.default:
            # Asked by C++. The autograd engine must not look for the streams of a GPU that is not there.
            inside = args[0].fake_mode.in_kernel_invocation or from_engine or self.transforms
            return META if inside and args[0].fake_device.type == "cuda" else args[0].fake_device
        if any(not issubclass(t, FakeTensor) and t.__torch_dispatch__ is not torch.Tensor.__torch_dispatch__ for t in types):
            return NotImplemented  # a wrapper (DTensor, a quantized tensor): its parts come by again
        if self._is_composite(func):
            with self:  # below autograd (inference mode, a DTensor's own calls) composite operations come whole; their parts are recorded
                return func.decompose(*args, **kwargs)
        self.operations += 1
        name = func._schema.name.split("::")[1]
        device = kwargs.get("device")
        device = torch.device(device) if device is not None else None
        if device is not None and device.type == "cuda" and device.index and not from_engine:
            self.names_gpu(device.index)
        if device is not None and (device.type == NO_CARD or device.type == "cuda" and device.index != 0 or device.type == "meta" and (from_engine or self.transforms)):
            device, kwargs = CUDA, dict(kwargs, device=CUDA)
        has_fakes = any(issubclass(t, FakeTensor) for t in types)
        if not has_fakes and (device is None or device.type in ("cpu", "meta")):
            return self._on_host(func, name, args, kwargs)
        if from_engine and name == "_to_copy" and device == CUDA and kwargs.get("dtype") in (None, args[0].dtype):
            return args[0]
        if from_engine and func is aten.add.Tensor and self._is_sole_owner(args[0]):
            func, name = aten.add_.Tensor, "add_"  # where a real tensor's gradients are summed, the engine adds in place
        special = SPECIAL.get(name)
        if special is not None:
            out = special(self, func, args, kwargs)
            if out is not NotImplemented:
                return out
        if is_sized_by_values(func):
            return sized_by_values(self, func, name, args, kwargs)
        return self._on_fakes(func, name, types, args, kwargs)

    @staticmethod
    def _is_sole_owner(tensor):
        """Whether the engine's buffer alone holds the tensor. The limits are the references of this call itself."""
        if torch.is_grad_enabled() or not on_gpu(tensor) or not tensor.is_contiguous() or tensor._use_count() > 4:
            return False
        return torch._C._storage_Use_Count(tensor.untyped_storage()._cdata) <= 2

    def _is_composite(self, func):
        known = self.composite.get(func)
        if known is None:
            has = lambda key: torch._C._dispatch_has_kernel_for_dispatch_key(func.name(), key)
            known = self.composite[func] = has("CompositeImplicitAutograd") and not has("CUDA") and not has("CPU")  # silu_backward has all three
        return known

    def _on_fakes(self, func, name, types, args, kwargs):
        for tensor in tree_leaves((args, kwargs)):
            if isinstance(tensor, FakeTensor):
                self.note(tensor, "earlier")
        if func._schema.is_mutable and args and isinstance(args[0], torch.Tensor) and not isinstance(args[0], FakeTensor):
            return args[0]  # a result on the host has no values
        try:
            out = self.fake.dispatch(func, types, args, kwargs)
        except (UnsupportedOperatorException, NotImplementedError):
            return without_shape_function(self, func, name, args, kwargs)
        call = kernels.call_of(name, args, kwargs)
        if call and "conv" in call:
            self.convolution_types[call["conv"]["dtype"]] = self.convolution_types.get(call["conv"]["dtype"], 0) + 1
        for tensor in out if isinstance(out, (tuple, list)) else (out,):
            if isinstance(tensor, FakeTensor) and self.note(tensor, "aten." + name, call):
                call = None
        work = kernels.work_bytes(name, args)
        if work and not self.paused:
            self.guess(f"{name}: the size of its work area is an approximation", work)
            self.work_area(work, "aten." + name)
        values.follow(self, func, name, args, kwargs, out)
        return out

    def _on_host(self, func, name, args, kwargs):
        if name in ("_pin_memory", "pin_memory"):
            return args[0]
        if kwargs.get("pin_memory"):
            kwargs = dict(kwargs, pin_memory=False)
        if name in FACTORIES and kwargs.get("device") != META:
            fake = self.fake.dispatch(func, (), args, kwargs)
            if fake.untyped_storage().nbytes() >= LARGE and fake.is_floating_point():
                return fake
        return func(*args, **kwargs)

    # Tensors that do not come from an operation

    def empty(self, size, dtype, name, stride=None, tag=None, call=None):
        options = {"dtype": dtype, "device": CUDA}
        if stride is None:
            out = self.fake.dispatch(aten.empty.memory_format, (), (list(size),), options)
        else:
            out = self.fake.dispatch(aten.empty_strided.default, (), (list(size), list(stride)), options)
        self.note(out, name, call, tag)
        return out

    def with_value(self, value, name, tag=None):
        out = self.empty(value.shape, value.dtype, name, tag=tag)
        values.set_value(out, value)
        return out

    # The trace

    def write(self, path, header, iteration_of):
        """`iteration_of(phase event)` numbers a phase once all of them are known."""
        if len(self.gpus) > 1 and header.get("world", 1) == 1:
            names = " and ".join(f"cuda:{i}" for i in sorted(self.gpus))
            self.guess(f"the script spreads one process over {names}: all of it was recorded as if on one GPU, so each of them needs less than this answer says")
        precision = max(self.convolution_types, key=self.convolution_types.get, default="fp32")
        guesses = [{"what": what, "times": times, "bytes": size} for what, (times, size) in self.guesses.items()]
        header = {"schema": "memfathom.trace/1", "precision": precision, "recorded_with": f"torch {torch.__version__}", "guesses": guesses} | header
        opened = gzip.open if str(path).endswith(".gz") else open
        with opened(path, "wt", encoding="utf-8") as out:
            out.write(json.dumps(header, separators=(",", ":")) + "\n")
            for event in list(self.events):
                if event["op"] == "phase":
                    event = {"op": "phase", "name": event["name"], "iteration": iteration_of(event)}
                out.write(json.dumps(event, separators=(",", ":")) + "\n")


class InThread(TorchDispatchMode):
    """The recorder in another thread: a dispatch mode belongs to the thread that entered it."""

    @classmethod
    def _should_skip_dynamo(cls):
        return False

    def __init__(self, recorder):
        super().__init__()
        self.recorder = recorder

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        return self.recorder.dispatch(func, types, args, kwargs or {}, sys._getframe(1).f_code is ENGINE)

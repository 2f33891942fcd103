"""A GPU in name: what PyTorch's Python asks about a GPU is answered from a description. Only Python is patched."""
import sys
import threading
import types

import torch
import torch._subclasses.fake_tensor as fake_tensor
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from torch.optim.optimizer import _foreach_supported_types as optimizer_types
from torch.utils._foreach_utils import _foreach_supported_types as foreach_types

from .attention import attention_for
from .moving import become, fake_class
from .values import take_for_finite
from .recorder import CUDA, NO_CARD, InThread
from .recurrent import GATES, recurrent_for

_device = type(CUDA)
_data_pointer = torch.UntypedStorage.data_ptr
A100 = {"name": "NVIDIA A100-SXM4-80GB", "capability": (8, 0), "memory": 80 << 30, "count": 1}


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


def pretend(recorder, gpu, patches, originals):
    """Puts every patch in place; patches.restore() takes them away."""
    _answer_questions(recorder, gpu, patches)
    _calm_the_engine(patches)
    _keep_identities(patches, originals)
    _route_devices(patches)
    _route_storages(recorder, patches)
    _route_threads(recorder, patches)
    _follow_transforms(recorder, patches)
    for kind in GATES:
        patches.set(torch._VF, kind, recurrent_for(recorder, kind, getattr(torch._VF, kind)))
    for owner in (torch, torch.Tensor):
        patches.set(owner, "isfinite", take_for_finite(owner.isfinite, recorder))
    library = torch.library.Library("aten", "IMPL")
    library.impl("scaled_dot_product_attention", attention_for(tuple(gpu["capability"])), "AutogradCUDA")
    patches.call_at_end(library._destroy)

    def compile(model=None, *args, **kwargs):
        recorder.guess("torch.compile: recorded as eager execution")
        return model if model is not None else lambda function: function

    patches.set(torch, "compile", compile)
    _run_scripted_code_as_python(recorder, patches)
    _give_lengths_as_lists(patches)
    formatted = torch.Tensor.__format__
    patches.set(torch.Tensor, "__format__", lambda t, how: t.item().__format__(how) if isinstance(t, FakeTensor) and t.dim() == 0 else formatted(t, how))
    patches.set(torch.nn.Module, "compile", lambda module, *a, **k: recorder.guess("torch.compile: recorded as eager execution"))


def _run_scripted_code_as_python(recorder, patches):
    """TorchScript's interpreter looks for the driver, and no dispatch mode sees into it."""
    def as_python(say):
        def scripted(thing=None, *args, **kwargs):
            if "site-packages" not in sys._getframe(1).f_code.co_filename:
                recorder.guess(f"{say}: recorded as the Python code it was made from")
            return thing

        return scripted

    patches.set(torch.jit, "script", as_python("torch.jit.script"))
    patches.set(torch.jit, "trace", as_python("torch.jit.trace"))


def _give_lengths_as_lists(patches):
    """As ctc_loss does by itself, but not for tensors of a Python class."""
    plain = torch.ctc_loss

    def ctc_loss(scores, targets, lengths, target_lengths, *args, **kwargs):
        listed = (t.tolist() if isinstance(t, torch.Tensor) and isinstance(scores, FakeTensor) else t for t in (lengths, target_lengths))
        return plain(scores, targets, *listed, *args, **kwargs)

    patches.set(torch, "ctc_loss", ctc_loss)


def _answer_questions(recorder, gpu, patches):
    name, capability, memory = gpu["name"], tuple(gpu["capability"]), gpu["memory"]
    properties = types.SimpleNamespace(name=name, major=capability[0], minor=capability[1], total_memory=memory, multi_processor_count=108, warp_size=32,
                                       max_threads_per_multi_processor=2048, is_integrated=False, is_multi_gpu_board=False, gcnArchName="", regs_per_multiprocessor=65536,
                                       shared_memory_per_block=49152, shared_memory_per_block_optin=166912, shared_memory_per_multiprocessor=167936,
                                       L2_cache_size=40 << 20, uuid="GPU-0", pci_bus_id=0, pci_device_id=0, pci_domain_id=0)
    stream, rng = IdleStream(), torch.zeros(16, dtype=torch.uint8)
    live, peak, nothing = lambda *a, **k: recorder.live, lambda *a, **k: recorder.peak, lambda *a, **k: None

    def statistics(*_, **__):
        names = ("allocated_bytes", "reserved_bytes", "active_bytes", "requested_bytes")
        return {f"{n}.all.{w}": f() for n in names for w, f in (("current", live), ("peak", peak))} | {"num_alloc_retries": 0, "num_ooms": 0}

    memory_answers = dict(mem_get_info=lambda device=None: (max(0, memory - recorder.live), memory), memory_allocated=live, max_memory_allocated=peak,
                          memory_reserved=live, max_memory_reserved=peak, memory_cached=live, max_memory_cached=peak, reset_peak_memory_stats=nothing,
                          reset_max_memory_allocated=nothing, empty_cache=nothing, memory_stats=statistics, memory_summary=lambda *a, **k: "",
                          set_per_process_memory_fraction=nothing)
    random_answers = dict(manual_seed=nothing, manual_seed_all=nothing, seed=nothing, seed_all=nothing, initial_seed=lambda: 0, get_rng_state=lambda device="cuda": rng.clone(),
                          set_rng_state=nothing, get_rng_state_all=lambda: [rng.clone()], set_rng_state_all=nothing)
    answers = dict(is_available=lambda: True, device_count=lambda: gpu["count"], current_device=lambda: 0, set_device=nothing, _lazy_init=nothing, init=nothing, is_initialized=lambda: True,
                   get_device_properties=lambda device=None: properties, get_device_name=lambda device=None: name, get_device_capability=lambda device=None: capability,
                   synchronize=nothing, ipc_collect=nothing, is_bf16_supported=lambda including_emulation=True: capability >= (8, 0), Stream=IdleStream, Event=IdleEvent,
                   current_stream=lambda device=None: stream, default_stream=lambda device=None: stream, stream=lambda s: Idle(), set_stream=nothing, device=Idle, device_of=Idle,
                   _exchange_device=lambda device: 0, _maybe_exchange_device=lambda device: 0, get_arch_list=lambda: ["sm_%d%d" % capability], is_current_stream_capturing=lambda: False,
                   can_device_access_peer=lambda a, b: True, utilization=lambda device=None: 0, nvtx=Idle(), _is_in_bad_fork=lambda: False, StreamContext=lambda s: Idle())
    for owner, table in ((torch.cuda, answers | memory_answers | random_answers), (torch.cuda.memory, memory_answers), (torch.cuda.random, random_answers)):
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


def _calm_the_engine(patches):
    """Fake tensors must not look for a driver, and autograd's engine must not look for streams of the GPU.

    With a private backend named, the engine takes that one, which no tensor belongs to, for the accelerator. A name cannot
    be taken back within a process.
    """
    patches.set(fake_tensor, "init_gpu_context", lambda device: None)
    patches.set(FakeTensorMode, "avoid_device_init", property(lambda self: True))
    if hasattr(torch._C, "_ensureCUDADeviceGuardSet"):
        torch._C._ensureCUDADeviceGuardSet()
    if torch._C._get_privateuse1_backend_name() == "privateuseone":
        torch.utils.rename_privateuse1_backend(NO_CARD)
        torch._register_device_module(NO_CARD, types.SimpleNamespace(is_available=lambda: False, device_count=lambda: 0, _is_in_bad_fork=lambda: False, manual_seed_all=lambda s: None,
                                                                     is_initialized=lambda: False, current_device=lambda: 0))
    lifting = torch._C._only_lift_cpu_tensors()
    torch._C._set_only_lift_cpu_tensors(True)  # torch.tensor(0., device="cuda") is a tensor of the host, then a copy
    patches.call_at_end(lambda: torch._C._set_only_lift_cpu_tensors(lifting))
    threads = torch.autograd.is_multithreading_enabled() if hasattr(torch.autograd, "is_multithreading_enabled") else True
    torch._C._set_multithreading_enabled(False)
    patches.call_at_end(lambda: torch._C._set_multithreading_enabled(threads))


def _keep_identities(patches, originals):
    """Parameters stay the same objects when they move, and keep a library's own class."""
    def apply(module, function, recurse=True):
        if recurse:
            for child in module.children():
                child._apply(function)
        for parameter in module._parameters.values():
            if parameter is None:
                continue
            with torch.no_grad():
                new = function(parameter)
                gradient = function(parameter.grad) if parameter.grad is not None else None
            if new is not parameter:
                become(parameter, new, originals)
            if gradient is not None:
                parameter.grad = gradient
        for key, buffer in module._buffers.items():
            if buffer is not None:
                if originals is not None and not isinstance(buffer, FakeTensor):
                    moved = function(buffer)
                    if moved is not buffer:
                        become(buffer, moved, originals)
                else:
                    module._buffers[key] = function(buffer)
        return module

    patches.set(torch.nn.Module, "_apply", apply)
    make = torch.Tensor._make_subclass

    def make_subclass(cls, data, require_grad=False, **options):
        if not isinstance(data, FakeTensor) or issubclass(cls, FakeTensor) or options:
            return make(cls, data, require_grad, **options)
        fresh = data.detach().requires_grad_(require_grad)
        fresh.__class__ = fake_class(cls)
        fresh._is_param = issubclass(cls, torch.nn.Parameter)
        fresh.host = getattr(data, "host", None)
        return fresh

    patches.set(torch.Tensor, "_make_subclass", staticmethod(make_subclass))
    data = torch.Tensor.data

    def set_data(tensor, value):
        if isinstance(value, FakeTensor) and value is not tensor:
            become(tensor, value, originals)
        else:
            data.__set__(tensor, value)

    patches.set(torch.Tensor, "data", property(data.__get__, set_data))
    # A library that asks whether a tensor is fake would take another path than on a GPU.
    patches.set(torch._subclasses, "FakeTensor", type("FakeTensor", (), {}))
    for table in (optimizer_types, foreach_types):
        if FakeTensor not in table:
            table.append(FakeTensor)
            patches.call_at_end(lambda table=table: table.remove(FakeTensor))


def _route_devices(patches):
    """0, "cuda" and "cuda:3" mean the one GPU; no tensor belongs to the private backend."""
    class Kind(type):
        def __instancecheck__(cls, value):
            return isinstance(value, _device)

        def __subclasscheck__(cls, other):
            return issubclass(other, _device)

    class device(metaclass=Kind):
        def __new__(cls, *args, **kwargs):
            made = _device(*args, **kwargs)
            return _device("cuda", made.index) if made.type == NO_CARD else made

    device.__module__, device.__qualname__ = "torch", "device"  # a device is pickled by the name of its class
    patches.set(torch, "device", device)
    plain_to = torch.Tensor.to

    def routed(value):
        if isinstance(value, int) and not isinstance(value, bool):
            return CUDA
        if isinstance(value, str) and value.split(":")[0] == "cuda":
            return CUDA
        return CUDA if isinstance(value, _device) and value.type in (NO_CARD, "cuda") else value

    def to(tensor, *args, **kwargs):
        if args:
            args = (routed(args[0]), *args[1:])
        if "device" in kwargs:
            kwargs["device"] = routed(kwargs["device"])
        return plain_to(tensor, *args, **kwargs)

    patches.set(torch.Tensor, "to", to)
    patches.set(torch.Tensor, "cuda", lambda t, device=None, non_blocking=False, memory_format=torch.preserve_format: plain_to(t, CUDA, memory_format=memory_format))
    patches.set(torch.Tensor, "pin_memory", lambda t, *a: t)
    patches.set(torch.Tensor, "is_pinned", lambda t, *a: False)
    patches.set(torch.Tensor, "record_stream", lambda t, s: None)
    generator = torch.Generator

    class Generators(type):
        def __instancecheck__(cls, value):
            return isinstance(value, generator)

    class Generator(metaclass=Generators):
        def __new__(cls, device="cpu"):
            return generator("cpu")

    patches.set(torch, "Generator", Generator)


def _route_storages(recorder, patches):
    resize = torch.UntypedStorage.resize_

    def resized(storage, size):
        resize(storage, size)
        recorder.resized(storage)
        return storage

    patches.set(torch.UntypedStorage, "resize_", resized)
    patches.set(torch.UntypedStorage, "data_ptr", lambda storage: storage._cdata if storage.device.type == "meta" else _data_pointer(storage))


def _follow_transforms(recorder, patches):
    """vmap and grad of torch.func: their wrappers ask for a device once and tell it to the autograd engine (recorder.transforms)."""
    def counted(function, by):
        def count(*args, **kwargs):
            recorder.transforms += by
            return function(*args, **kwargs)

        return count

    for module, kind in ((torch._functorch.vmap, "vmap"), (torch._functorch.eager_transforms, "grad")):
        for word, by in (("increment", 1), ("decrement", -1)):
            name = f"_{kind}_{word}_nesting"
            patches.set(module, name, counted(getattr(module, name), by))


def _route_threads(recorder, patches):
    run = threading.Thread.run

    def recorded(thread):
        torch._C._set_only_lift_cpu_tensors(True)
        with InThread(recorder):
            run(thread)

    patches.set(threading.Thread, "run", recorded)

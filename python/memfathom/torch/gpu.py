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
from .lazy import make_where_moved, move_lazily
from .legacy import give_types
from .moving import become, fake_class
from .questions import answer_questions
from .recorder import CUDA, NO_CARD, OWN_FOLDER, TORCH_FOLDER, InThread
from .reading import read_at_once
from .recurrent import GATES, recurrent_for
from .values import take_for_finite
from .workers import send_shapes

_device = type(CUDA)
_data_pointer = torch.UntypedStorage.data_ptr
A100 = {"name": "NVIDIA A100-SXM4-80GB", "capability": (8, 0), "memory": 80 << 30, "count": 1}


def pretend(recorder, gpu, patches, originals):
    """Puts every patch in place; patches.restore() takes them away."""
    answer_questions(recorder, gpu, patches)
    read_at_once(recorder, patches)
    give_types(patches)
    make_where_moved(patches)
    send_shapes(recorder, patches)
    _calm_the_engine(patches)
    _keep_identities(patches, originals)
    _route_devices(recorder, patches)
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
    _read_tensors_in_lists(patches)
    formatted = torch.Tensor.__format__
    patches.set(torch.Tensor, "__format__", lambda t, how: t.item().__format__(how) if isinstance(t, FakeTensor) and t.dim() == 0 else formatted(t, how))
    patches.set(torch.nn.Module, "compile", lambda module, *a, **k: recorder.guess("torch.compile: recorded as eager execution"))


def _run_scripted_code_as_python(recorder, patches):
    """TorchScript's interpreter looks for the driver, and no dispatch mode sees into it."""
    def as_python(say, plain):
        def scripted(thing=None, *args, **kwargs):
            caller = sys._getframe(1).f_code.co_filename
            if caller.startswith(TORCH_FOLDER):  # tables of PyTorch's own, made at import
                return plain(thing, *args, **kwargs)
            if "site-packages" not in caller:
                recorder.guess(f"{say}: recorded as the Python code it was made from")
            return thing

        return scripted

    patches.set(torch.jit, "script", as_python("torch.jit.script", torch.jit.script))
    patches.set(torch.jit, "trace", as_python("torch.jit.trace", torch.jit.trace))


def _give_lengths_as_lists(patches):
    """As ctc_loss does by itself, but not for tensors of a Python class."""
    plain = torch.ctc_loss

    def ctc_loss(scores, targets, lengths, target_lengths, *args, **kwargs):
        listed = (t.tolist() if isinstance(t, torch.Tensor) and isinstance(scores, FakeTensor) else t for t in (lengths, target_lengths))
        return plain(scores, targets, *listed, *args, **kwargs)

    patches.set(torch, "ctc_loss", ctc_loss)


def _numbers(data):
    """Lists of numbers where lists of tensors were."""
    if isinstance(data, (list, tuple)):
        return [_numbers(entry) for entry in data]
    return data.tolist() if isinstance(data, torch.Tensor) else data


def _read_tensors_in_lists(patches):
    """torch.tensor([losses.max(), losses.min()]) reads each of them, as PyTorch does, which reads fake tensors with a driver's hooks."""
    def reading(plain):
        def tensor(data, *args, **kwargs):
            first = data
            while isinstance(first, (list, tuple)) and first:
                first = first[0]
            return plain(_numbers(data) if first is not data and isinstance(first, FakeTensor) else data, *args, **kwargs)

        return tensor

    for name in ("tensor", "as_tensor"):
        patches.set(torch, name, reading(getattr(torch, name)))


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
            if parameter is None or move_lazily(parameter, function):
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
    deepcopy = torch.Tensor.__deepcopy__

    def copied(tensor, memo):
        """A parameter is copied without its gradient."""
        if not (isinstance(tensor, FakeTensor) and isinstance(tensor, torch.nn.Parameter)) or id(tensor) in memo:
            return deepcopy(tensor, memo)
        memo[id(tensor)] = fresh = make_subclass(torch.nn.Parameter, tensor.data.clone(memory_format=torch.preserve_format), tensor.requires_grad)
        return fresh

    patches.set(torch.Tensor, "__deepcopy__", copied)
    as_plain = torch.Tensor.as_subclass

    def as_subclass(tensor, cls):
        """A class that carries metadata beside its numbers (MONAI's, torchvision's) ends where the numbers do."""
        return tensor if isinstance(tensor, FakeTensor) else as_plain(tensor, cls)

    patches.set(torch.Tensor, "as_subclass", as_subclass)
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


def _route_devices(recorder, patches):
    """0, "cuda" and "cuda:3" mean the one GPU; no tensor belongs to the private backend."""
    class Kind(type):
        def __instancecheck__(cls, value):
            return isinstance(value, _device)

        def __subclasscheck__(cls, other):
            return issubclass(other, _device)

    class device(metaclass=Kind):
        def __new__(cls, *args, **kwargs):
            made = _device(*args, **kwargs)
            if made.type == "cuda" and made.index is not None and not sys._getframe(1).f_code.co_filename.startswith((TORCH_FOLDER, OWN_FOLDER)):
                recorder.names_gpu(made.index)
            return _device("cuda", made.index) if made.type == NO_CARD else made

    device.__module__, device.__qualname__ = "torch", "device"  # a device is pickled by the name of its class
    patches.set(torch, "device", device)
    plain_to = torch.Tensor.to

    def routed(value):
        if isinstance(value, int) and not isinstance(value, bool):
            recorder.names_gpu(value)
            return CUDA
        if isinstance(value, str) and value.split(":")[0] == "cuda":
            recorder.names_gpu(_device(value).index)
            return CUDA
        if isinstance(value, _device) and value.type in (NO_CARD, "cuda"):
            if value.index != 0:  # 0 may be what a tensor says of itself
                recorder.names_gpu(value.index)
            return CUDA
        return value

    def cuda(tensor, device=None, non_blocking=False, memory_format=torch.preserve_format):
        routed(0 if device is None and recorder.current_gpu is None else recorder.current_gpu if device is None else device)
        return plain_to(tensor, CUDA, memory_format=memory_format)

    def to(tensor, *args, **kwargs):
        if args:
            args = (routed(args[0]), *args[1:])
        if "device" in kwargs:
            kwargs["device"] = routed(kwargs["device"])
        return plain_to(tensor, *args, **kwargs)

    patches.set(torch.Tensor, "to", to)
    patches.set(torch.Tensor, "cuda", cuda)
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

"""Moving: a tensor that a module or an optimizer holds becomes a fake one, and stays the same Python object."""
import copyreg

import torch
from torch._subclasses.fake_tensor import FakeTensor

_PLAIN = (torch.Tensor, torch.nn.Parameter)
_FAKE_FIELDS = {"fake_device", "fake_mode", "constant", "real_tensor", "pytype", "dispatch_keys", "_is_param", "nonzero_memo", "item_memo", "unique_memo",
                "unique_consecutive_memo", "nested_int_memo", "host"}
_combined = {}


def fake_class(cls):
    """A library's own class of tensors, as a fake tensor."""
    if cls in _PLAIN + (FakeTensor,) or issubclass(cls, FakeTensor):
        return FakeTensor if cls in _PLAIN else cls
    if cls not in _combined:
        _combined[cls] = type(cls.__name__, (cls, FakeTensor), {"__module__": cls.__module__, "__torch_dispatch__": FakeTensor.__torch_dispatch__, "device": FakeTensor.device})
    return _combined[cls]


def become(tensor, new, originals=None):
    """`tensor` becomes what `new` is. `originals` collects pairs that give real tensors back."""
    if type(new) in _PLAIN and type(tensor) in _PLAIN:
        torch._C.TensorBase.data.__set__(tensor, new)
        return
    if isinstance(new, FakeTensor) and isinstance(tensor, FakeTensor) and new.fake_device == tensor.fake_device:
        tensor.host = getattr(new, "host", None)
        torch._C.TensorBase.data.__set__(tensor, new)
        return
    is_parameter = isinstance(tensor, torch.nn.Parameter)
    kept = {k: v for k, v in tensor.__dict__.items() if k not in _FAKE_FIELDS}
    gradient = tensor.grad
    fresh = new.detach().requires_grad_(tensor.requires_grad)
    if isinstance(new, FakeTensor):
        fresh.__class__ = fake_class(type(tensor))
        fresh.host = getattr(new, "host", None)
        if is_parameter:
            fresh._is_param = True
    elif is_parameter:
        fresh = torch.nn.Parameter(fresh, tensor.requires_grad)
    for key, value in kept.items():
        fresh.__dict__.setdefault(key, value)
    _swap(tensor, fresh)
    if originals is not None and not isinstance(fresh, FakeTensor):
        originals.append((tensor, fresh))
    if gradient is not None and gradient.device == tensor.device:
        tensor.grad = gradient


def _swap(a, b):
    for slot in set(copyreg._slotnames(type(a))) & set(copyreg._slotnames(type(b))):
        if hasattr(a, slot) and hasattr(b, slot):
            kept = getattr(a, slot)
            setattr(a, slot, getattr(b, slot))
            setattr(b, slot, kept)
    a.__class__, b.__class__ = b.__class__, a.__class__
    a.__dict__, b.__dict__ = b.__dict__, a.__dict__
    torch._C._swap_tensor_impl(a, b)


def give_back(originals):
    """Undoes become() for real tensors, newest first."""
    for tensor, original in reversed(originals):
        _swap(tensor, original)
        if isinstance(tensor.grad, FakeTensor):
            tensor.grad = None
    originals.clear()

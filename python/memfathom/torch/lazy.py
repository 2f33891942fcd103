"""Lazy modules: a parameter without a shape is moved before it has one; it is made on the host and moved then."""
import torch
from torch._subclasses.fake_tensor import FakeTensor
from torch.nn.modules.lazy import LazyModuleMixin
from torch.nn.parameter import UninitializedTensorMixin, is_lazy

from .moving import become


def move_lazily(parameter, function):
    """Whether the parameter is one without a shape; keeps in mind what `function` would make of it."""
    if not is_lazy(parameter):
        return False
    known = getattr(parameter, "made_like", None)
    parameter.made_like = function(known if known is not None else torch.empty(0, dtype=parameter.data.dtype))
    return True


def make_where_moved(patches):
    plain = LazyModuleMixin._infer_parameters

    def infer_parameters(lazy, module, args, kwargs=None):
        parameters = dict(module.named_parameters(recurse=False))
        plain(lazy, module, args, kwargs)
        for parameter in parameters.values():
            like = getattr(parameter, "made_like", None)
            if like is None or isinstance(parameter, FakeTensor) and parameter.fake_device.type == "cuda":
                continue
            del parameter.made_like
            with torch.no_grad():
                become(parameter, parameter.to(like.device, like.dtype))

    def materialize(tensor, shape, device=None, dtype=None):
        """As PyTorch's, but the class changes first: a large tensor of the host has no memory, and its class says so."""
        value = torch.empty(shape, device=device or tensor.data.device, dtype=dtype or tensor.data.dtype)
        tensor.__class__ = tensor.cls_to_become
        tensor.data = value

    patches.set(UninitializedTensorMixin, "materialize", materialize)
    patches.set(LazyModuleMixin, "_infer_parameters", infer_parameters)

"""Legacy tensor types: torch.cuda.FloatTensor and its like, which look for a driver when they are used."""
import torch
from torch._subclasses.fake_tensor import FakeTensor

from .recorder import CUDA

DTYPES = {"Float": torch.float32, "Double": torch.float64, "Half": torch.float16, "BFloat16": torch.bfloat16, "Long": torch.int64, "Int": torch.int32, "Short": torch.int16,
          "Char": torch.int8, "Byte": torch.uint8, "Bool": torch.bool}


def _type_of(dtype):
    class Type(type):
        def __instancecheck__(cls, value):
            return isinstance(value, FakeTensor) and value.fake_device.type == "cuda" and value.dtype == cls.dtype

    class Made(metaclass=Type):
        """torch.cuda.FloatTensor(2, 3) is empty, torch.cuda.FloatTensor([2, 3]) has content."""

        def __new__(cls, *args):
            if args and not isinstance(args[0], (int, torch.Size)):
                given = args[0]
                return given.to(CUDA, cls.dtype) if isinstance(given, torch.Tensor) else torch.tensor(given, dtype=cls.dtype, device=CUDA)
            return torch.empty(*args, dtype=cls.dtype, device=CUDA) if args else torch.empty(0, dtype=cls.dtype, device=CUDA)

    Made.dtype, Made.is_cuda = dtype, True
    return Made


def give_types(patches):
    made = {name: _type_of(dtype) for name, dtype in DTYPES.items() if hasattr(torch.cuda, name + "Tensor")}
    names = {}
    for name, kind in made.items():
        kind.__name__ = kind.__qualname__ = name + "Tensor"
        kind.__module__ = "torch.cuda"
        names[f"torch.cuda.{name}Tensor"] = kind
        patches.set(torch.cuda, name + "Tensor", kind)
    plain, set_default = torch.Tensor.type, torch.set_default_tensor_type

    def of(kind):
        found = names.get(kind) if isinstance(kind, str) else kind
        return found if found in made.values() else None

    def typed(tensor, dtype=None, non_blocking=False, **options):
        kind = of(dtype)
        return plain(tensor, dtype, non_blocking, **options) if kind is None else tensor.to(CUDA, kind.dtype)

    def default(kind):
        wanted = of(kind)
        if wanted is None:
            set_default(kind)
            return
        torch.set_default_dtype(wanted.dtype)
        torch.set_default_device(CUDA)

    patches.set(torch.Tensor, "type", typed)
    patches.set(torch, "set_default_tensor_type", default)

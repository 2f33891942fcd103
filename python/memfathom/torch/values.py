"""Host values: what is known of the content of tensors that have no memory.

Integer, boolean and small float tensors on the GPU carry a copy of their content on the host, as long as it follows from
data of the script itself. Masks, lengths and labels then have their true values; what comes out of a network has none.
A host value of a view is a view of the host value of its base, so in-place changes reach both.
"""
import torch
from torch._subclasses.fake_tensor import FakeTensor
from torch.utils._pytree import tree_leaves, tree_map_only

from . import host

MAX_ELEMENTS = 1 << 16
MAX_FLOATS = 1 << 12
CPU = torch.device("cpu")
# True of every tensor of a healthy run.
HEALTHY = {"isnan": False, "isinf": False, "isneginf": False, "isposinf": False}
RANDOM = ("rand", "randn", "randint", "randperm", "bernoulli", "normal", "multinomial", "uniform", "exponential", "dropout")
CHOICES = ("argmax", "argmin", "multinomial", "topk", "sort", "argsort")
# Operations under which a tensor of one value stays one, whatever its size: checks for overflow consist of them.
ELEMENTWISE = ("logical_or", "logical_and", "logical_not", "bitwise_or", "bitwise_and", "bitwise_not", "_to_copy", "logical_or_", "bitwise_or_")
REDUCTIONS = ("any", "all", "max", "amax", "sum", "min", "amin")
VERDICTS = {"all": True, "any": False, "_is_all_true": True, "_is_any_true": False}  # checks pass
VIEWS = ("view", "detach", "alias", "reshape", "_unsafe_view", "expand", "slice", "select", "unsqueeze", "squeeze")
CHOSEN = 5  # the index that an unknown choice is taken to be, where there are so many
MAX_SPREAD = 512  # alternatives from which on a choice is that of a word


def worth_keeping(tensor):
    limit = MAX_FLOATS if tensor.is_floating_point() else MAX_ELEMENTS
    return tensor.numel() <= limit and not tensor.is_complex()


def value_of(tensor):
    """The content of a tensor as a tensor on the host, or None."""
    if not isinstance(tensor, FakeTensor):
        return tensor
    if tensor.layout != torch.strided:
        return None
    if getattr(tensor.untyped_storage(), "unknown", False):
        return None
    known = getattr(tensor, "host", None)
    return known if known is not None else tensor.constant


def set_value(tensor, value):
    if value is not None and value.shape == tensor.shape and tensor.layout == torch.strided and worth_keeping(tensor):
        tensor.host = value.detach()
    else:
        tensor.host = None


def forget(tensor):
    if tensor.layout == torch.strided:
        tensor.untyped_storage().unknown = True


def overwrite(tensor, value):
    """The whole tensor was written; value None: with something unknown."""
    storage = tensor.untyped_storage()
    if value is None or not worth_keeping(tensor):
        storage.unknown = True
        return
    old = getattr(tensor, "host", None)
    if old is not None:
        old.copy_(value)
    elif tensor.numel() * tensor.element_size() == storage.nbytes():
        tensor.host = value.detach().to(tensor.dtype).expand(tensor.shape).clone()
    else:
        storage.unknown = True
        return
    if tensor.numel() * tensor.element_size() == storage.nbytes():
        storage.unknown = False


def on_host(func, args, kwargs):
    """func on host values; None where one of them is unknown."""
    for tensor in tree_leaves((args, kwargs)):
        if isinstance(tensor, FakeTensor) and value_of(tensor) is None:
            return None
    args, kwargs = tree_map_only(FakeTensor, value_of, (args, kwargs))
    if kwargs.get("device") is not None:
        kwargs = dict(kwargs, device=CPU)
    try:
        return func(*args, **kwargs)
    except (RuntimeError, NotImplementedError, IndexError, TypeError, ValueError):
        return None


def _set_uniform(tensor, value):
    tensor.uniform = value
    if worth_keeping(tensor):
        tensor.host = value.expand(tensor.shape).clone()


def take_for_finite(isfinite, recorder):
    """torch.isfinite, which is several operations to a dispatcher: what comes out of a healthy run is finite."""
    def finite(tensor):
        out = isfinite(tensor)
        if isinstance(out, FakeTensor) and value_of(out) is None:
            recorder.guess("values that the script tests with isfinite are taken to be finite")
            _set_uniform(out, host.tensor(True))
        return out

    return finite


def _stays_uniform(func, name, args, kwargs, out):
    inputs = [t for t in tree_leaves(args) if isinstance(t, torch.Tensor)]
    known = [getattr(t, "uniform", None) for t in inputs]
    if not inputs or any(value is None for value in known):
        return False
    if name in ELEMENTWISE:
        value = known[0].to(out.dtype) if name == "_to_copy" else func(*(k.clone() for k in known))
    elif name in REDUCTIONS and (name != "sum" or not known[0].any()) or name in VIEWS:
        value = known[0].to(out.dtype)
    else:
        return False
    _set_uniform(out, value)
    return True


def _follow_lists(func, args, kwargs):
    """_foreach operations change lists of tensors in place; they return nothing."""
    changed = [t for t in args[0] if isinstance(t, FakeTensor) and getattr(t, "host", None) is not None]
    if not changed:
        return
    if all(value_of(t) is not None for t in tree_leaves((args, kwargs)) if isinstance(t, FakeTensor)):
        on_host(func, args, kwargs)
        return
    for tensor in changed:
        forget(tensor)


def follow(recorder, func, name, args, kwargs, out):
    """Notes the value of what an operation returned or changed."""
    if func._schema.is_mutable and args and isinstance(args[0], (list, tuple)):
        _follow_lists(func, args, kwargs)
        return
    first = out[0] if isinstance(out, (tuple, list)) and out else out
    if not isinstance(first, FakeTensor):
        return
    if name in HEALTHY:
        _set_uniform(first, host.tensor(HEALTHY[name]))
        return
    if _stays_uniform(func, name, args, kwargs, first):
        return
    mutates = func._schema.is_mutable
    if not mutates and not worth_keeping(first) or name.startswith(("empty", "new_empty")):
        return
    target = args[0] if mutates and args and isinstance(args[0], FakeTensor) else None
    if target is not None and not worth_keeping(target):
        target.host = None
        return
    is_random = any(word in name for word in RANDOM) and "dropout" not in name
    if is_random and (first.is_floating_point() or name == "multinomial"):
        value = None
    else:
        value = on_host(func, args, kwargs)
    if value is None and name in CHOICES:
        guess_choice(recorder, name, args, out)
        return
    if value is None and name in VERDICTS and target is None:
        recorder.guess(f"{name} of unknown values is taken to be {VERDICTS[name]}")
        _set_uniform(first, host.tensor(VERDICTS[name]))
        return
    if target is not None:
        if value is None:
            forget(target)
        return
    outs = out if isinstance(out, (tuple, list)) else (out,)
    values = value if isinstance(value, (tuple, list)) else (value,) * len(outs)
    for tensor, known in zip(outs, values):
        if isinstance(tensor, FakeTensor):
            set_value(tensor, known if isinstance(known, torch.Tensor) else None)


def guess_choice(recorder, name, args, out):
    """Indices that a network would choose. Few alternatives (experts, classes) are spread evenly; of a vocabulary one word is taken."""
    size = args[0].shape[-1] if args[0].dim() else 1
    indices = [t for t in (out if isinstance(out, (tuple, list)) else (out,)) if isinstance(t, FakeTensor) and t.dtype == torch.int64]
    for tensor in indices:
        if not worth_keeping(tensor):
            continue
        if name in ("argmax", "argmin", "multinomial") and size > MAX_SPREAD:
            chosen = min(CHOSEN, size - 1)
            tensor.host = host.full(tensor.shape, chosen, dtype=torch.int64)
            recorder.guess(f"{name} of unknown values: index {chosen} is taken to be chosen")
        else:
            tensor.host = (host.arange(tensor.numel()) % max(1, size)).reshape(tensor.shape)
            recorder.guess(f"{name} of unknown values: all indices are taken to be chosen equally often")

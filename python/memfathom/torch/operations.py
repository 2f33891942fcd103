"""Operations that a fake tensor cannot answer: copies between host and GPU, values, shapes that depend on values."""
import torch
from torch._subclasses.fake_tensor import FakeTensor
from torch.utils._pytree import tree_leaves, tree_map_only

from . import host, values
from .reading import assumed_number

aten = torch.ops.aten
CPU = torch.device("cpu")
MAX_RUN_ON_HOST = 1 << 28  # bytes of an operation's arguments that are filled with zeros to learn the shape of its result
LARGE = 1 << 20  # bytes from which a float tensor of the CPU is fake


INDEXING = ("index", "index_put", "index_put_", "_index_put_impl_", "_unsafe_index")  # sized by masks only, which _index replaces


def is_sized_by_values(func):
    if func._schema.name.split("::")[1] in INDEXING:
        return False
    return torch.Tag.dynamic_output_shape in func.tags or torch.Tag.data_dependent_output in func.tags


def _assumed(tensor):
    """Content for a tensor whose content is unknown: masks are true, numbers are all different."""
    if tensor.dtype == torch.bool:
        return host.ones(tensor.shape, dtype=torch.bool)
    if tensor.is_floating_point() or tensor.is_complex():
        return host.ones(tensor.shape, dtype=tensor.dtype)
    return host.arange(tensor.numel()).reshape(tensor.shape).to(tensor.dtype)


def sized_by_values(recorder, func, name, args, kwargs):
    """Runs the operation on the host, with assumed content where it is unknown."""
    unknown = [t for t in tree_leaves((args, kwargs)) if isinstance(t, FakeTensor) and values.value_of(t) is None]
    if name == "masked_select":  # the count is that of the mask; the selected content does not matter
        return _masked_select(recorder, args)
    host_args, host_kwargs = tree_map_only(FakeTensor, lambda t: _assumed(t) if values.value_of(t) is None else values.value_of(t), (args, kwargs))
    if host_kwargs.get("device") is not None:
        host_kwargs = dict(host_kwargs, device=CPU)
    result = func(*host_args, **host_kwargs)

    def fresh(value):
        out = recorder.with_value(value, "aten." + name)
        if unknown and name != "nonzero":
            values.set_value(out, None)
        return out

    out = tree_map_only(torch.Tensor, fresh, result)
    if unknown:
        size = sum(t.untyped_storage().nbytes() for t in tree_leaves(out) if isinstance(t, FakeTensor))
        recorder.guess(f"{name} of unknown values: the largest result is taken", size)
    return out


def without_shape_function(recorder, func, name, args, kwargs):
    """Some operations can be asked for the shape of their result only by running them: on the host, with zeros."""
    def zeros(x):
        if x.layout == torch.sparse_coo:
            return torch.sparse_coo_tensor(zeros(x._indices()), zeros(x._values()), x.shape, is_coalesced=x.is_coalesced())
        known = values.value_of(x)
        return known if known is not None else host.zeros(x.shape, dtype=x.dtype)

    fakes = [t for t in tree_leaves((args, kwargs)) if isinstance(t, FakeTensor)]
    if sum(t.numel() * t.element_size() for t in fakes if t.layout == torch.strided) > MAX_RUN_ON_HOST:
        raise NotImplementedError(f"{func} of tensors this large cannot be recorded: PyTorch has no shape function for it (torch.library.register_fake adds one)")
    host_args, host_kwargs = tree_map_only(FakeTensor, zeros, (args, kwargs))
    if host_kwargs.get("device") is not None:
        host_kwargs = dict(host_kwargs, device=CPU)
    result = func(*host_args, **host_kwargs)
    if func._schema.is_mutable and args and isinstance(args[0], FakeTensor):
        values.forget(args[0])
        return args[0]
    recorder.guess(f"{name}: PyTorch has no shape function for it; it was run on the host for its shape, work areas of its kernel are not known")
    return tree_map_only(torch.Tensor, lambda t: _to_gpu(recorder, t, "aten." + name), result)


def _to_gpu(recorder, tensor, name):
    """A result of the host as a tensor of the GPU whose content is unknown."""
    if tensor.layout != torch.sparse_coo:
        return recorder.empty(tensor.shape, tensor.dtype, name, tensor.stride())
    parts = [recorder.empty(part.shape, part.dtype, name) for part in (tensor._indices(), tensor._values())]
    return _sparse(recorder, tensor, tensor.dtype, parts)


def _sparse(recorder, like, dtype, parts):
    types = {"dtype": dtype, "layout": torch.sparse_coo, "device": parts[0].device, "is_coalesced": like.is_coalesced()}
    return recorder.fake.dispatch(aten._sparse_coo_tensor_with_dims_and_tensors.default, (FakeTensor,), (like.sparse_dim(), like.dense_dim(), list(like.shape), *parts), types)


def _masked_select(recorder, args):
    x, mask = args[0], args[1]
    known = values.value_of(mask)
    shape = torch.broadcast_shapes(x.shape, mask.shape)
    if known is None:
        count = shape.numel()
        recorder.guess("masked_select of an unknown mask: all elements are taken", count * x.element_size())
    else:
        count = int(known.expand(shape).sum())
    return recorder.empty((count,), x.dtype, "aten.masked_select")


def _index(recorder, func, args, kwargs):
    """x[mask] is computed with the positions of the mask, which are tensors of their own."""
    indices = args[1]
    is_mask = lambda i: isinstance(i, torch.Tensor) and i.dtype in (torch.bool, torch.uint8)
    if not any(map(is_mask, indices)):
        return NotImplemented
    expanded = []
    for index in indices:
        if is_mask(index):
            places = recorder.dispatch(aten.nonzero.default, (FakeTensor,), (index,), {}) if isinstance(index, FakeTensor) else torch.nonzero(index)
            types = (FakeTensor,) if isinstance(places, FakeTensor) else ()
            expanded.extend(recorder.dispatch(aten.select.int, types, (places, 1, d), {}) for d in range(places.shape[1]))
        else:
            expanded.append(index)
    types = (FakeTensor,) if any(isinstance(t, FakeTensor) for t in (args[0], *expanded)) else ()
    return recorder.dispatch(func, types, (args[0], expanded, *args[2:]), kwargs)


def _item(recorder, func, args, kwargs):
    known = values.value_of(args[0])
    if known is not None:
        return known.item()
    return assumed_number(recorder, args[0].dtype)


def _equal(recorder, func, args, kwargs):
    known = [values.value_of(t) for t in args[:2]]
    return torch.equal(*known) if all(k is not None for k in known) else True


def _to_copy(recorder, func, args, kwargs):
    x, device = args[0], kwargs.get("device")
    dtype = kwargs.get("dtype") or x.dtype
    if not isinstance(x, FakeTensor) and x.layout == torch.sparse_coo:
        parts = [_to_copy(recorder, func, (part,), dict(kwargs, dtype=type)) for part, type in ((x._indices(), torch.int64), (x._values(), dtype))]
        return _sparse(recorder, x, dtype, parts)
    if not isinstance(x, FakeTensor):  # from the host to the GPU
        layout = torch.empty_like(x, device="meta", dtype=dtype, memory_format=kwargs.get("memory_format") or torch.preserve_format)
        out = recorder.empty(x.shape, dtype, "aten._to_copy", layout.stride(), tag="inputs")
        if values.worth_keeping(x):
            values.set_value(out, x.detach().to(dtype, copy=True))
        return out
    if x.fake_device.type == "cuda" and device is not None and torch.device(device).type == "cpu":
        return _to_host(recorder, x, dtype)
    if x.fake_device.type == "cpu" and device is not None and torch.device(device).type == "cuda":
        out = recorder.fake.dispatch(func, (FakeTensor,), args, kwargs)
        recorder.note(out, "aten._to_copy", tag="inputs")
        return out
    return NotImplemented


def _to_host(recorder, x, dtype):
    known = values.value_of(x)
    if known is not None:
        return known.to(dtype, copy=True)
    if x.numel() * dtype.itemsize < LARGE or not dtype.is_floating_point:
        return host.zeros(x.shape, dtype=dtype)
    return recorder.fake.dispatch(aten.empty.memory_format, (), (list(x.shape),), {"dtype": dtype, "device": CPU})


def _copy(recorder, func, args, kwargs):
    target, source = args[0], args[1]
    known = values.value_of(source)
    if not isinstance(target, FakeTensor):
        return target.zero_() if known is None else target.copy_(known)
    if isinstance(source, FakeTensor) and source.fake_device == target.fake_device:
        return NotImplemented
    recorder.note(target, "earlier")
    values.overwrite(target, known)
    return target


def _fill(recorder, func, args, kwargs):
    target = args[0]
    if not isinstance(target, FakeTensor):
        return NotImplemented
    recorder.note(target, "earlier")
    value = args[1] if len(args) > 1 else 0
    known = values.value_of(value) if isinstance(value, torch.Tensor) else host.tensor(value)
    values.overwrite(target, known)
    return target


def _nms(recorder, func, args, kwargs):
    recorder.guess("nms: every box is kept", 8 * args[0].shape[0])
    return recorder.with_value(host.arange(args[0].shape[0]), "torchvision.nms")


def _pack_padded(recorder, func, args, kwargs):
    x, lengths, batch_first = args
    packed, sizes = torch._pack_padded_sequence(host.zeros(*x.shape[:2], 1), lengths, batch_first)
    return recorder.empty((packed.shape[0], *x.shape[2:]), x.dtype, "aten._pack_padded_sequence"), sizes


def _bincount(recorder, func, args, kwargs):
    known = values.value_of(args[0])
    minimum = kwargs.get("minlength", args[2] if len(args) > 2 else 0)
    weights = kwargs.get("weights", args[1] if len(args) > 1 else None)
    if known is not None and weights is None:
        return recorder.with_value(torch.bincount(known, minlength=minimum), "aten.bincount")
    recorder.guess("bincount of unknown values: minlength bins", 8 * minimum)
    return recorder.empty((max(minimum, 1),), torch.int64 if weights is None else torch.float64, "aten.bincount")


def _own_ctc_loss(recorder, func, args, kwargs):
    return False  # cuDNN takes int32 targets of the host only


def _ctc_loss(recorder, func, args, kwargs):
    scores, targets, lengths = args[0], args[1], args[3]
    known = values.value_of(lengths) if isinstance(lengths, torch.Tensor) else host.tensor(lengths)
    longest = int(known.max()) if known is not None else targets.shape[-1]
    steps, count = scores.shape[0], scores.shape[1] if scores.dim() == 3 else 1
    name = "aten._ctc_loss"
    return recorder.empty((count,), scores.dtype, name), recorder.empty((count, steps, 2 * longest + 1), scores.dtype, name)


def _ctc_loss_backward(recorder, func, args, kwargs):
    scores, alpha = args[1], args[6]
    out = recorder.empty(scores.shape, scores.dtype, "aten._ctc_loss_backward")
    recorder.work_area(alpha.numel() * alpha.element_size(), "aten._ctc_loss_backward")  # beta, as large as alpha
    return out


def _per_channel(count):
    def statistics(recorder, func, args, kwargs):
        return tuple(recorder.empty((args[0].shape[1],), torch.float32, func._schema.name.replace("::", ".")) for _ in range(count))

    return statistics


def _same_shape(recorder, func, args, kwargs):
    return recorder.empty(args[0].shape, args[0].dtype, func._schema.name.replace("::", "."), args[0].stride())


def _nothing(recorder, func, args, kwargs):
    return None


SPECIAL = {"_local_scalar_dense": _item, "equal": _equal, **dict.fromkeys(INDEXING, _index), "_to_copy": _to_copy, "copy_": _copy, "fill_": _fill, "zero_": _fill,
           "nms": _nms, "_pack_padded_sequence": _pack_padded, "bincount": _bincount, "_ctc_loss": _ctc_loss, "_ctc_loss_backward": _ctc_loss_backward, "_use_cudnn_ctc_loss": _own_ctc_loss, "_use_miopen_ctc_loss": _own_ctc_loss, "record_stream": _nothing, "_pin_memory": lambda r, f, a, k: a[0],
           "batch_norm_stats": _per_channel(2), "batch_norm_gather_stats_with_counts": _per_channel(2), "batch_norm_backward_reduce": _per_channel(4),
           "batch_norm_elemt": _same_shape, "batch_norm_backward_elemt": _same_shape}

"""Reading: tensors without memory that a script turns into numpy arrays or lists, all elements at once."""
import numpy as np
import torch
from torch._subclasses.fake_tensor import FakeTensor

from . import host, values

PATIENCE, LONG_PATIENCE = 100, 512  # questions on one line of the script in one step: for a number, and for a yes, as a generation waits for its end
READ = "numbers that the script reads from tensors (a loss, a norm) are taken as 1.0"


def _is_content(recorder, dtype):
    """Whether a loop of the script has asked for a value so often that it waits for one: an error below a tolerance, an end."""
    if not dtype.is_floating_point and dtype != torch.bool:
        return False
    asked, line = recorder.asked, recorder.line_of_script()
    asked[line] = asked.get(line, 0) + 1
    patience = LONG_PATIENCE if dtype == torch.bool else PATIENCE
    if asked[line] <= patience:
        return False
    recorder.guess(f"{line or 'a loop'} reads values in a loop that may end when they are small or true: they are taken to be so after {patience} times in a step; with real values the loop ends sooner or later than that")
    return True


def assumed_number(recorder, dtype):
    """What an element is taken for whose value is unknown."""
    if _is_content(recorder, dtype):
        return True if dtype == torch.bool else 0.0
    if dtype.is_floating_point or dtype.is_complex:
        recorder.guess(READ)
        return 1.0
    recorder.guess(f"the value of a tensor of {dtype} that the script asks for is unknown")
    return False if dtype == torch.bool else 0 if dtype == torch.uint8 else 1  # bytes are flags: "did anything overflow?"


def read_at_once(recorder, patches):
    to_numpy, to_list = torch.Tensor.numpy, torch.Tensor.tolist

    def numpy(tensor, *, force=False):
        if not isinstance(tensor, FakeTensor):
            return to_numpy(tensor, force=force)
        if tensor.fake_device.type != "cpu" and not force:
            raise TypeError(f"can't convert {tensor.fake_device} device type tensor to numpy. Use Tensor.cpu() to copy the tensor to host memory first.")
        if tensor.requires_grad and not force:
            raise RuntimeError("Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead.")
        known = values.value_of(tensor)
        if known is not None:
            return to_numpy(known)
        assumed_number(recorder, tensor.dtype)
        kind = to_numpy(host.zeros(1, dtype=tensor.dtype)).dtype
        return np.zeros(tuple(tensor.shape), kind)  # zeros cost no memory until they are written

    def tolist(tensor):
        if not isinstance(tensor, FakeTensor):
            return to_list(tensor)
        if tensor.dim() == 0:
            return tensor.item()
        known = values.value_of(tensor)
        return to_list(known) if known is not None else np.full(tuple(tensor.shape), assumed_number(recorder, tensor.dtype)).tolist()

    patches.set(torch.Tensor, "numpy", numpy)
    for owner in (torch.Tensor, FakeTensor):  # which has its own, an element at a time
        patches.set(owner, "tolist", tolist)

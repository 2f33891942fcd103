"""A GPU that is full: scripts that handle it, by halving their batch, are told; all others are recorded beyond it."""
import sys

import torch

from .recorder import OWN_FOLDER, TORCH_FOLDER

# Names and words of code that catches the error, the user's or a library's (accelerate, Lightning).
HANDLERS = ("OutOfMemoryError", "should_reduce_batch_size", "is_oom_error", "is_cuda_out_of_memory")
WORDS = "out of memory"
OUTSIDE = 512 << 20  # of the GPU's memory, what the CUDA context takes: an approximation
SAID = "the script handles a full GPU: it was told so where its tensors exceed the GPU's memory, without fragmentation"


class Limit:
    """Raises torch.OutOfMemoryError where an allocation exceeds the GPU and the script would catch it."""

    def __init__(self, recorder, memory):
        self.recorder, self.memory, self.reached = recorder, memory - OUTSIDE, False
        self._handling = {}

    def check(self, size):
        if self.recorder.live + size <= self.memory or not self._is_handled():
            return
        self.reached = True
        self.recorder.guess(SAID)
        raise torch.OutOfMemoryError(f"CUDA out of memory. Tried to allocate {size / 2**20:.2f} MiB. GPU 0 has a total capacity of {(self.memory + OUTSIDE) / 2**30:.2f} GiB of which "
                                     f"{max(0, self.memory - self.recorder.live) / 2**20:.2f} MiB is free. (as recorded by memfathom)")

    def _is_handled(self):
        frame = sys._getframe(2)
        while frame is not None:
            code = frame.f_code
            known = self._handling.get(code)
            if known is None:
                own = code.co_filename.startswith((TORCH_FOLDER, OWN_FOLDER))
                names = not own and any(name in HANDLERS for name in code.co_names)
                known = self._handling[code] = names or not own and any(isinstance(c, str) and WORDS in c for c in code.co_consts[1:])  # the first is the docstring
            if known:
                return True
            frame = frame.f_back
        return False

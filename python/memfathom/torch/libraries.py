"""What other libraries need, patched when they are imported."""
import importlib.abc
import importlib.util
import os
import sys

import torch

from .flex import flex_for
from .questions import Idle

ONE_THREAD = "HF_DEACTIVATE_ASYNC_LOAD"  # weights are read in the thread that is recorded
DEEPSPEED_UPDATES = ("fused_adam", "cpu_adam", "fused_lamb", "fused_lion", "cpu_lion", "cpu_adagrad")


def prepare(recorder, patches):
    before = os.environ.get(ONE_THREAD)
    os.environ[ONE_THREAD] = "1"
    patches.call_at_end(lambda: os.environ.pop(ONE_THREAD) if before is None else os.environ.update({ONE_THREAD: before}))
    for name, patch in (("triton.runtime.jit", _triton), ("bitsandbytes.functional", _bitsandbytes), ("deepspeed.runtime.zero.partition_parameters", _one_rank),
                        ("deepspeed.runtime.zero.partitioned_param_coordinator", _one_rank), ("deepspeed.runtime.zero.stage3", _one_rank), ("deepspeed.ops.op_builder.builder", _deepspeed_kernels), ("vllm", _refuse_vllm),
                        ("torch.nn.attention.flex_attention", _flex)):
        on_import(name, lambda module, patch=patch: patch(module, recorder, patches), patches)


def on_import(name, then, patches):
    """Calls then(module) when `name` is imported, or now if it is."""
    if name in sys.modules:
        then(sys.modules[name])
        return

    class Finder(importlib.abc.MetaPathFinder):
        def find_spec(self, wanted, path, target=None):
            if wanted != name:
                return None
            sys.meta_path.remove(self)
            spec = importlib.util.find_spec(wanted)
            if spec is None or spec.loader is None:
                return spec
            run = spec.loader.exec_module

            def exec_module(module):
                run(module)
                then(module)

            spec.loader.exec_module = exec_module
            return spec

    finder = Finder()
    sys.meta_path.insert(0, finder)
    patches.call_at_end(lambda: finder in sys.meta_path and sys.meta_path.remove(finder))


def _triton(jit, recorder, patches):
    """A Triton kernel writes into tensors that exist: leaving it out changes no allocation of PyTorch."""
    def run(kernel, *args, **kwargs):
        recorder.guess("Triton kernels are not run; what they write is unknown")

    patches.set(jit.JITFunction, "run", run)


def _bitsandbytes(functional, recorder, patches):
    """Its optimizers update in place; paged states are tensors of the host that the driver moves."""
    for name in ("optimizer_update_32bit", "optimizer_update_8bit_blockwise", "optimizer_update_8bit"):
        if hasattr(functional, name):
            patches.set(functional, name, lambda *a, **k: recorder.guess("bitsandbytes' update kernels are not run"))
    if hasattr(functional, "get_paged"):
        patches.set(functional, "get_paged", lambda *shape, dtype=torch.float32, device=None: torch.zeros(*shape, dtype=dtype))
    if hasattr(functional, "is_on_gpu"):
        patches.set(functional, "is_on_gpu", lambda tensors: True)


def _one_rank(module, recorder, patches):
    if hasattr(module, "assert_ints_same_as_other_ranks"):
        patches.set(module, "assert_ints_same_as_other_ranks", lambda ints: None)


def _deepspeed_kernels(builder, recorder, patches):
    """Its optimizers update in place, by kernels that DeepSpeed would compile now; on a machine without nvcc it cannot."""
    load = builder.OpBuilder.load

    def loaded(op, *args, **kwargs):
        if op.name not in DEEPSPEED_UPDATES:
            return load(op, *args, **kwargs)
        recorder.guess("DeepSpeed's update kernels are neither compiled nor run")
        return Idle()

    patches.set(builder.OpBuilder, "load", loaded)


def _flex(module, recorder, patches):
    patches.set(module, "flex_attention", flex_for(recorder, module.flex_attention))


def _refuse_vllm(module, recorder, patches):
    raise ImportError("vLLM runs its own CUDA kernels and cannot be recorded without a GPU; remove use_vllm from the script's arguments")

#!/usr/bin/env python3
"""Records what steps of PyTorch, its FSDP and DeepSpeed's ZeRO allocate, for the jobs written in a test or a file of jobs.

    record-steps.py tests/estimator/parallel/recorded_strategies_test.cc [name]
    record-steps.py jobs.jsonl [name]         # lines {"what": ..., "job": {...}}

Prints the highest live bytes of each phase of the second iteration. Needs torch, transformers, peft and deepspeed (the
figures of the tests: 2.15.0, 5.23.0, 0.21.2, 0.19.8), no GPU and no CUDA library. Tensors are fake tensors of the CPU device,
the process group is PyTorch's fake one (the last rank under ZeRO, the first under FSDP). Every storage is noted when an
aten call makes it and, by a weak reference, when it ends; each counts rounded up to 512 B. With offload the GPU's tensors are
fake ones of the meta device, so that the host's are told apart. Where PyTorch would choose by the device, Python asks for what
a GPU of compute capability 8.0 takes: gpu_kernels(). DeepSpeed's CPU accelerator differs from CUDA's in streams only.
"""
import gc
import json
import os
import re
import subprocess
import sys
import warnings
import weakref

os.environ.update(CUDA_VISIBLE_DEVICES="", DS_ACCELERATOR="cpu", LOCAL_RANK="0", HF_HUB_OFFLINE="1", TRANSFORMERS_VERBOSITY="error")
warnings.simplefilter("ignore")

import torch
import torch.distributed as dist
import torch.nn.functional as F
import transformers
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.distributed.tensor import DTensor
from torch.distributed.tensor._sharding_prop import ShardingPropagator
from torch.testing._internal.distributed.fake_pg import FakeStore
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

aten = torch.ops.aten
TYPES = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}


class Meter(TorchDispatchMode):
    """Counts the live bytes of a device's storages."""

    def __init__(self, device):
        super().__init__()
        self.device, self.sizes, self.live, self.phase, self.peaks = device, {}, 0, "making", {}
        self.paused, self.scalars = False, True
        resize, propagate = torch.UntypedStorage.resize_, ShardingPropagator._propagate_tensor_meta_non_cached

        def resized(storage, size):
            resize(storage, size)
            if storage._cdata in self.sizes:
                self.change(storage._cdata, storage.nbytes())

        def uncounted(*args, **kwargs):  # DTensor asks for shapes of its results: no memory of the step
            self.paused = True
            try:
                return propagate(*args, **kwargs)
            finally:
                self.paused = False

        torch.UntypedStorage.resize_ = resized
        ShardingPropagator._propagate_tensor_meta_non_cached = uncounted
        # Fake storages all lie at 0, which FSDP1 would take for one and the same.
        torch.UntypedStorage.data_ptr = lambda storage: storage._cdata if storage.nbytes() else 0

    def change(self, key, size):
        size = (size + 511) // 512 * 512
        self.live += size - self.sizes.get(key, 0)
        self.sizes[key] = size
        self.peaks[self.phase] = max(self.live, self.peaks.get(self.phase, 0))

    def gone(self, key):
        self.live -= self.sizes.pop(key)

    def enter(self, phase):
        self.phase = phase
        self.peaks[phase] = max(self.live, self.peaks.get(phase, 0))

    def note(self, t):
        if self.paused or t.device.type != self.device or t.dim() == 0 and not self.scalars:
            return
        storage = t.untyped_storage()
        if storage._cdata not in self.sizes:
            self.change(storage._cdata, storage.nbytes())
            weakref.finalize(storage, self.gone, storage._cdata)

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if any(issubclass(t, DTensor) for t in types):
            return NotImplemented  # its parts come by again
        if func is aten._local_scalar_dense.default:
            return 1.0 if args[0].is_floating_point() else 0  # a step, a norm; "did anything overflow?" no
        out = layer_norm(*args) if func is aten.native_layer_norm.default else func(*args, **kwargs)
        if func is aten.zeros_like.default and kwargs.get("device") is not None:
            return out  # where DeepSpeed keeps shapes, on the meta device
        for t in tree_leaves(out):
            if isinstance(t, torch.Tensor):
                self.note(t)
        return out


def layer_norm(x, shape, weight, bias, eps):
    rows = x.shape[:x.dim() - len(shape)] + (1,) * len(shape)  # statistics are fp32 on a GPU whatever the input is
    return torch.empty_like(x), *(torch.empty(rows, dtype=torch.float32, device=x.device) for _ in range(2))


def gpu_kernels():
    def attention(q, k, v, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None, enable_gqa=False):
        if attn_mask is None and q.dtype in (torch.float16, torch.bfloat16):
            return aten._scaled_dot_product_flash_attention(q, k, v, dropout_p, is_causal, False, scale=scale)[0]
        if attn_mask is None and q.shape[1] == k.shape[1]:
            learns = torch.is_grad_enabled() and any(t.requires_grad for t in (q, k, v))
            return aten._scaled_dot_product_efficient_attention(q, k, v, None, learns, dropout_p, is_causal, scale=scale)[0]
        return aten._scaled_dot_product_attention_math(q, k, v, attn_mask, dropout_p, is_causal, None, scale=scale, enable_gqa=enable_gqa)[0]

    def dropout(x, p=0.5, training=True, inplace=False):
        return torch.native_dropout(x, p, True)[0] if training and p > 0 else x

    F.scaled_dot_product_attention, F.dropout = attention, dropout
    transformers.masking_utils.find_packed_sequence_indices = lambda *_: None  # nothing is packed

    # What autocast computes in fp32 on CUDA but not on the CPU, as far as the jobs here use it.
    library = torch.library.Library("aten", "IMPL")
    inside = torch._C.DispatchKeySet(torch._C.DispatchKey.AutocastCPU)

    def softmax(x, dim, dtype=None):
        with torch._C._ExcludeDispatchKeyGuard(inside):
            return aten._softmax(x, dim, x.dtype == torch.float16)

    def power(x, exponent):
        with torch._C._ExcludeDispatchKeyGuard(inside):
            return aten.pow(x.float(), exponent)

    library.impl("softmax.int", softmax, "AutocastCPU")
    library.impl("pow.Tensor_Scalar", power, "AutocastCPU")
    return library


def convert(module, fn, recurse=True):
    """Module._apply by way of .data, as it treats plain tensors (fake ones it would swap, which DeepSpeed's hooks forbid)."""
    for each in module.modules() if recurse else [module]:
        for p in each._parameters.values():
            if p is not None:
                p.data = fn(p.data)
        each._buffers.update({k: fn(b) for k, b in each._buffers.items() if b is not None})
    return module


class FourierOperator(torch.nn.Module):
    """Blocks of spectral plus 1x1 convolution with GELU, then a 1x1 projection: the list of layers of a job."""

    def __init__(self, layers):
        super().__init__()
        conv = lambda layer: torch.nn.Conv2d(layer["in"], layer["out"], layer["kernel"])
        blocks, (block,) = layers[0]["times"], layers[0]["layers"]
        width, self.modes = block["width"], block["modes"]
        corner = lambda: torch.nn.Parameter(torch.empty(width, width, *self.modes, dtype=torch.cfloat))
        self.project = torch.nn.Sequential(conv(layers[1]), torch.nn.GELU(), conv(layers[3]))
        self.local = torch.nn.ModuleList(torch.nn.Conv2d(width, width, 1) for _ in range(blocks))
        self.low, self.high = (torch.nn.ParameterList(corner() for _ in range(blocks)) for _ in range(2))

    def spectral(self, x, low, high):
        a, b = self.modes
        spectrum = torch.fft.rfft2(x)
        out = torch.zeros(*x.shape[:-1], x.shape[-1] // 2 + 1, dtype=torch.cfloat, device=x.device)
        out[:, :, :a, :b] = torch.einsum("bixy,ioxy->boxy", spectrum[:, :, :a, :b], low)
        out[:, :, -a:, :b] = torch.einsum("bixy,ioxy->boxy", spectrum[:, :, -a:, :b], high)
        return torch.fft.irfft2(out, s=x.shape[-2:])

    def operate(self, x):
        for low, high, local in zip(self.low, self.high, self.local):
            x = F.gelu(self.spectral(x, low, high) + local(x))
        return self.project(x)

    def forward(self, x, y):
        return {"loss": F.mse_loss(self.operate(x), y)}


def make_model(job):
    training = job["training"]
    if "layers" in job["model"]:
        return FourierOperator(job["model"]["layers"])
    config = dict(job["model"]["config"])
    config = transformers.AutoConfig.for_model(config.pop("model_type"), **config)
    config.use_cache = training["mode"] == "generate"
    config._attn_implementation = training.get("attention", "sdpa")
    model = transformers.AutoModelForCausalLM.from_config(config, dtype=TYPES.get(training["precision"], torch.float32))
    model.train(training["mode"] == "train")
    checkpoints, lora = training.get("gradient_checkpointing") == "full", training.get("lora")
    if lora:
        import peft
        model = peft.get_peft_model(model, peft.LoraConfig(r=lora["rank"], target_modules=lora["targets"], lora_dropout=lora["dropout"]),
                                    autocast_adapter_dtype=False)
        for name, p in model.named_parameters():
            if "lora_" in name:
                p.data = p.data.to(TYPES[lora["precision"]])
        if checkpoints:
            model.enable_input_require_grads()
    if checkpoints:
        model.gradient_checkpointing_enable({"use_reentrant": False, "preserve_rng_state": False})
    return model


def make_optimizer(model, optimizer):
    learning = [p for p in model.parameters() if p.requires_grad]
    how = {optimizer.get("implementation", "foreach"): True}
    if optimizer["name"] == "sgd-momentum":
        return torch.optim.SGD(learning, 0.1, momentum=0.9, **how)
    return torch.optim.AdamW(learning, 0.1, **how)


def fully_sharded(model, job, mesh):
    parallel = job["parallel"]
    compute = torch.bfloat16 if job["training"]["precision"] == "amp-bf16" else None
    reduce = TYPES.get(parallel.get("reduce_precision"), compute)
    blocks = [m for m in model.modules() if type(m).__name__ in (model._no_split_modules or ())]
    if parallel["fsdp_version"] == 2:
        from torch.distributed.fsdp import CPUOffloadPolicy, MixedPrecisionPolicy, OffloadPolicy, fully_shard
        options = dict(mesh=mesh, mp_policy=MixedPrecisionPolicy(param_dtype=compute, reduce_dtype=reduce),
                       offload_policy=CPUOffloadPolicy(pin_memory=False) if "offload" in parallel else OffloadPolicy())
        for module in blocks:
            fully_shard(module, **options)
        return fully_shard(model, **options)
    from torch.distributed.fsdp import FullyShardedDataParallel, MixedPrecision
    from torch.distributed.fsdp.wrap import ModuleWrapPolicy
    return FullyShardedDataParallel(model, auto_wrap_policy=ModuleWrapPolicy({type(m) for m in blocks}), device_id=torch.device("cpu"),
                                    mixed_precision=MixedPrecision(compute, reduce) if compute else None, use_orig_params=True)


def zero_engine(model, job):
    import deepspeed
    from deepspeed.accelerator import get_accelerator
    from deepspeed.runtime.zero import partition_parameters, partitioned_param_coordinator, stage3
    for module in (partition_parameters, partitioned_param_coordinator, stage3):
        module.assert_ints_same_as_other_ranks = lambda ints: None  # there are no others
    training, parallel = job["training"], job["parallel"]
    zero = {"stage": parallel["zero_stage"]}
    for key, value in parallel.get("zero", {}).items():
        zero[f"stage3_{key}" if key.startswith(("max_", "prefetch_")) else key] = value
    if "offload" in parallel:
        accelerator = get_accelerator()
        accelerator.device_name, accelerator.current_device_name = lambda *_: "meta", lambda: "meta"
        accelerator.on_accelerator = lambda t: t.device.type == "meta"
        for what, where in parallel["offload"].items():
            zero["offload_param" if what == "parameters" else f"offload_{what}"] = {"device": where}
    return deepspeed.initialize(model=model, optimizer=make_optimizer(model, training["optimizer"]), config={
        "train_micro_batch_size_per_gpu": training["batch_size"], "bf16": {"enabled": True}, "zero_optimization": zero,
        "gradient_accumulation_steps": training.get("gradient_accumulation_steps", 1), "zero_force_ds_cpu_optimizer": False,
        "steps_per_print": 10**9})[0]


def make_batch(job, device):
    training = job["training"]
    if "layers" in job["model"]:
        channels, *pixels = job["model"]["input"]["shape"]
        sizes = {"x": channels, "y": job["model"]["layers"][-1]["out"]}
        return {name: torch.zeros(training["batch_size"], c, *pixels, device=device) for name, c in sizes.items()}
    shape = training["batch_size"], training["sequence_length"]
    names = ("input_ids", "labels") if training["mode"] == "train" else ("input_ids",)
    return {name: torch.zeros(shape, dtype=torch.int64, device=device) for name in names}


def generate(meter, model, batch, autocast):
    for _ in range(2):
        meter.peaks = {}
        with torch.no_grad(), autocast:
            meter.enter("prefill")
            out = model(**batch, logits_to_keep=1)
            meter.enter("between")
            del out


def train(meter, job, model, engine, optimizer, batch):
    accumulate = job["training"].get("gradient_accumulation_steps", 1)
    for _ in range(2):
        meter.peaks = {}
        for micro_batch in range(accumulate):
            meter.enter("forward")
            loss = (engine or model)(**batch)["loss"]
            meter.enter("backward")
            engine.backward(loss) if engine else (loss / accumulate if accumulate > 1 else loss).backward()
            if micro_batch + 1 == accumulate:
                meter.enter("step")
            if engine:
                engine.step()
        if not engine:
            meter.scalars = job["training"]["optimizer"].get("implementation") == "fused"  # else steps are counted on the host
            optimizer.step()
            meter.scalars = True
            optimizer.zero_grad(set_to_none=True)
        meter.enter("between")


def record(job):
    parallel, precision = job.get("parallel", {}), job["training"]["precision"]
    zero, count = parallel.get("zero_stage", 0), parallel.get("num_gpus", 1)
    device = "meta" if "offload" in parallel else "cpu"
    dist.init_process_group("cpu:fake,meta:fake", store=FakeStore(), rank=count - 1 if zero else 0, world_size=count)
    mesh = dist.init_device_mesh("cpu", (count,))
    library = gpu_kernels()
    torch.nn.Module._apply = convert
    meter, engine, optimizer = Meter(device), None, None
    autocast = torch.autocast("cpu", TYPES[precision.removeprefix("amp-")], enabled=precision.startswith("amp-") and not parallel)
    with FakeTensorMode(allow_non_fake_inputs=True), meter:
        with torch.device(device):
            model = make_model(job)
        if zero:
            engine = zero_engine(model, job)
        elif "fsdp" in parallel:
            model = fully_sharded(model, job, mesh)
        batch = make_batch(job, device)
        gc.collect()
        gc.disable()
        if job["training"]["mode"] == "generate":
            generate(meter, model, batch, autocast)
        else:
            optimizer = None if zero else make_optimizer(model, job["training"]["optimizer"])
            forward = model.forward
            if not parallel:
                def model(**batch):
                    with autocast:
                        return forward(**batch)
            train(meter, job, model, engine, optimizer, batch)
    return {phase: meter.peaks[phase] for phase in ("forward", "backward", "step", "prefill") if phase in meter.peaks}


def jobs(path):
    with open(path) as file:
        text = file.read()
    if path.endswith(".jsonl"):
        yield from ((line["what"], line["job"]) for line in map(json.loads, text.splitlines()))
        return
    for name, test, job in re.findall(r'(?:\{"([^"]+)",|TEST\(\w+, (\w+)\)[^"]*)\s*R"\((.*?)\)"', text, re.S):
        yield name or test, json.loads(job)


if __name__ == "__main__":
    wanted = sys.argv[2] if len(sys.argv) > 2 else None
    for what, job in jobs(sys.argv[1]):
        if wanted is None:  # each in a process of its own: libraries keep state
            subprocess.run([sys.executable, __file__, sys.argv[1], what], check=True, stderr=subprocess.DEVNULL)
        elif wanted == what:
            print(json.dumps({"what": what, **record(job)}), flush=True)

"""Stacks of layers as modules of torch, and their losses."""
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.checkpoint import checkpoint

MODULES = {"relu": nn.ReLU, "gelu": nn.GELU, "silu": nn.SiLU, "tanh": nn.Tanh, "sigmoid": nn.Sigmoid, "leaky_relu": nn.LeakyReLU, "elu": nn.ELU, "softplus": nn.Softplus, "mish": nn.Mish, "hardswish": nn.Hardswish,
           "relu6": nn.ReLU6, "selu": nn.SELU, "prelu": nn.PReLU, "gelu_pytorch_tanh": lambda: nn.GELU(approximate="tanh")}
NORMS = {2: nn.BatchNorm1d, 3: nn.BatchNorm1d, 4: nn.BatchNorm2d, 5: nn.BatchNorm3d}  # by the ranks of what they get
CONVOLUTIONS = {"conv1d": nn.Conv1d, "conv2d": nn.Conv2d, "conv3d": nn.Conv3d, "conv_transpose2d": nn.ConvTranspose2d}


class Residual(nn.Module):
    def __init__(self, layers):
        super().__init__()
        self.layers = layers

    def forward(self, x):
        return self.layers(x) + x


class Concat(nn.Module):
    def __init__(self, branches):
        super().__init__()
        self.branches = nn.ModuleList(branches)

    def forward(self, x):
        return torch.cat([branch(x) for branch in self.branches], 1)


class Checkpoint(nn.Module):
    def __init__(self, layers):
        super().__init__()
        self.layers = layers

    def forward(self, x):
        return checkpoint(self.layers, x, use_reentrant=False)


class Positions(nn.Module):
    def __init__(self, length, size):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(length, size))

    def forward(self, x):
        return x + self.weight[:x.size(1)]


class Attention(nn.Module):
    def __init__(self, spec):
        super().__init__()
        self.need_weights = spec["need_weights"]
        self.attention = nn.MultiheadAttention(spec["hidden"], spec["heads"], spec["dropout"], batch_first=True)

    def forward(self, x):
        return self.attention(x, x, x, need_weights=self.need_weights)[0]


class Crop(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.size = size

    def forward(self, x):
        left, right, top, bottom = self.size
        return x[..., top:x.size(-2) - bottom, left:x.size(-1) - right]


WHOLE = {"residual": Residual, "checkpoint": Checkpoint}


class FourierBlock(nn.Module):
    """Li et al.: a spectral convolution of two corners next to a 1x1 convolution, then GELU."""

    def __init__(self, width, modes):
        super().__init__()
        self.modes = modes
        self.weights1, self.weights2 = (nn.Parameter(torch.empty(width, width, *modes, dtype=torch.cfloat)) for _ in range(2))
        self.skip = nn.Conv2d(width, width, 1)

    def spectral(self, x):
        a, b = self.modes
        spectrum = torch.fft.rfft2(x)
        out = torch.zeros(*x.shape[:2], x.size(-2), x.size(-1) // 2 + 1, dtype=torch.cfloat, device=x.device)
        out[:, :, :a, :b] = torch.einsum("bixy,ioxy->boxy", spectrum[:, :, :a, :b], self.weights1)
        out[:, :, -a:, :b] = torch.einsum("bixy,ioxy->boxy", spectrum[:, :, -a:, :b], self.weights2)
        return torch.fft.irfft2(out, s=(x.size(-2), x.size(-1)))

    def forward(self, x):
        return F.gelu(self.spectral(x) + self.skip(x))


def _convolution(kind, spec, size):
    made = kind(size, spec["out"], spec["kernel"], **{k: spec[k] for k in ("stride", "padding", "dilation", "groups", "bias") if k in spec})
    return made, spec["out"]


def _module(spec, size, rank):
    """The module of a layer after `size` channels or features, and how many follow."""
    kind = spec["type"]
    if kind in MODULES:
        return MODULES[kind](**({"inplace": True} if spec.get("inplace") else {})), size
    if kind == "linear":
        return nn.Linear(size, spec["out"], spec.get("bias", True)), spec["out"]
    if kind in CONVOLUTIONS:
        return _convolution(CONVOLUTIONS[kind], spec, size)
    if kind in WHOLE:
        return WHOLE[kind](_sequence(spec["layers"], size, rank)[0]), size
    if kind == "concat":
        parts = [_sequence(branch, size, rank) for branch in spec["branches"]]
        return Concat([part for part, _ in parts]), sum(out for _, out in parts)
    if kind == "fno_block":
        return FourierBlock(spec["width"], spec["modes"]), size
    if kind == "embedding":
        return nn.Embedding(spec["vocab"], spec["size"]), spec["size"]
    if kind == "pixel_shuffle":
        return nn.PixelShuffle(spec["factor"]), size // spec["factor"] ** 2
    simple = {"layer_norm": lambda: nn.LayerNorm(size), "rms_norm": lambda: nn.RMSNorm(size), "dropout": lambda: nn.Dropout(spec["p"], spec.get("inplace", False)), "position_embedding": lambda: Positions(spec["length"], size),
              "multihead_attention": lambda: Attention(spec), "pad": lambda: nn.ZeroPad2d(spec["size"]), "crop": lambda: Crop(spec["size"]), "group_norm": lambda: nn.GroupNorm(spec["groups"], size),
              "instance_norm": lambda: nn.InstanceNorm2d(size, affine=True), "max_pool2d": lambda: nn.MaxPool2d(spec["kernel"], spec.get("stride"), spec.get("padding", 0)),
              "avg_pool2d": lambda: nn.AvgPool2d(spec["kernel"], spec.get("stride"), spec.get("padding", 0)),
              "adaptive_avg_pool2d": lambda: nn.AdaptiveAvgPool2d(spec["size"]), "flatten": nn.Flatten, "upsample": lambda: nn.Upsample(scale_factor=spec["scale"], mode=spec["mode"])}
    return simple[kind](), size


def _sequence(layers, size, rank=4):
    made = []
    for spec in layers:
        if spec["type"] == "batch_norm":
            module = NORMS[rank](size)
        else:
            module, size = _module(spec, size, rank)
        made.append(module)
    return nn.Sequential(*made), size


def _operator(layers, size):
    """An operator has its lifting and its projection as modules."""
    first, after = (next(i for i in order if layers[i]["type"] == "fno_block") for order in (range(len(layers)), range(len(layers) - 1, -1, -1)))
    lift, size = _sequence(layers[:first], size)
    blocks = [_sequence([spec], size)[0][0] for spec in layers[first:after + 1]]
    return nn.Sequential(lift if len(lift) > 1 else lift[0], *blocks, _sequence(layers[after + 1:], size)[0])


def module_of(model):
    shape, layers = model["input"]["shape"], model["layers"]
    if any(layer["type"] == "fno_block" for layer in layers):
        return _operator(layers, shape[0])
    return _sequence(layers, shape[0], len(shape) + 1)[0]


LOSSES = {"cross_entropy": F.cross_entropy, "mse": F.mse_loss, "l1": F.l1_loss, "smooth_l1": F.smooth_l1_loss, "binary_cross_entropy_with_logits": F.binary_cross_entropy_with_logits}


def target_of(model, output, dtype):
    if model["loss"] == "cross_entropy":
        return torch.zeros(output[0], *output[2:], dtype=torch.int64)
    return torch.zeros(*output, dtype=dtype)
